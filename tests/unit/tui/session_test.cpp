#include "tui/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "query/results/machine_results.h"
#include "temporary_folder.h"
#include "unit/monitor/scripted_machine.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::uint64_t kHalf = 60;  // seconds
constexpr std::uint64_t kAll = 120;

/// Observations of `tidemark oom`, and its report at the end.
struct Seen {
  std::string states;
  std::string changes;
  json report;
};

Seen seen_by_the_command() {
  ScriptedMachine machine;
  MonitorEngine engine(machine.options());
  engine.start();
  Seen seen;
  for (const std::uint64_t second : {kHalf, kAll}) {
    machine.allow_until(second);
    do {
      for (const MonitorEvent& event : engine.tick()) {
        if (event.risk) seen.changes += text_of(*event.risk);
      }
    } while (!machine.is_over());
    seen.states += text_of(engine.state());
  }
  seen.report = json::parse(to_json(engine.oom()));
  return seen;
}

TEST(Session, MatchesTheCommand) {
  const Seen command = seen_by_the_command();
  const TemporaryFolder folder;
  ScriptedMachine machine;
  Seen seen;
  tui::ProgramOptions options;
  options.engine = machine.options();
  options.on_update = [&](const MachineState&, const std::vector<RiskChange>& changes, const auto& /*recorded*/) {
    for (const RiskChange& change : changes) seen.changes += text_of(change);
  };
  tui::Session session(options);
  session.start();
  for (const std::uint64_t second : {kHalf, kAll}) {
    machine.allow_until(second);
    while (!machine.is_over()) {
      std::this_thread::sleep_for(1ms);
      session.update();
    }
    session.update();
    seen.states += text_of(session.content().machine);
    session.mark();
  }
  EXPECT_EQ(seen.states, command.states);
  EXPECT_EQ(seen.changes, command.changes);
  ASSERT_FALSE(session.save(folder.at("session.json")).error);
  std::ifstream file(folder.at("session.json"));
  const json saved = json::parse(file);
  EXPECT_EQ(saved["devices"]["0"]["risk_assessment"], command.report["devices"]["0"]["risk_assessment"]);
  EXPECT_EQ(saved["devices"]["0"]["peak_memory"], command.report["devices"]["0"]["peak_memory"]);
  EXPECT_EQ(saved["devices"]["0"]["peak_is"], "recorded");
  EXPECT_EQ(saved["processes"], command.report["processes"]);
  ASSERT_EQ(saved["marks"].size(), 2U);
  EXPECT_EQ(saved["marks"][1]["seconds"], 120.0);
}

TEST(Session, PausedDataStays) {
  ScriptedMachine machine;
  tui::ProgramOptions options;
  options.engine = machine.options();
  tui::Session session(options);
  session.start();
  const auto wait = [&] {
    while (!machine.is_over()) std::this_thread::sleep_for(1ms);
    session.update();
  };
  machine.allow_until(5);
  wait();
  session.hold(true);
  machine.allow_until(10);
  wait();
  EXPECT_EQ(session.content().machine.now_ns, 5 * ScriptedMachine::kSecondNs);
  session.hold(false);
  EXPECT_EQ(session.content().machine.now_ns, 10 * ScriptedMachine::kSecondNs);
}

}  // namespace
}  // namespace tidemark::testing
