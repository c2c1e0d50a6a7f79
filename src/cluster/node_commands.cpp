#include "cluster/node_commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark {
namespace {

std::string dump_text(const LiveDump& dump) {
  if (dump.paths.empty()) return dump.problem.empty() ? "nothing was written" : dump.problem;
  const std::string more = dump.paths.size() > 1 ? fmt::format(" and {} more", dump.paths.size() - 1) : "";
  return dump.paths.front() + more + (dump.problem.empty() ? "" : ", but " + dump.problem);
}

}  // namespace

void NodeCommands::take(const CommandOrder& order, MonitorEngine& engine, const std::vector<RankIdentity>& ranks,
                        Clock::time_point now) {
  update(now);
  const auto round = rounds_.find(order.id);
  if (order.phase == CommandPhase::prepare && round == rounds_.end()) return prepare(order, engine, ranks, now);
  if (round == rounds_.end() || round->second.is_committed) return;
  if (order.phase == CommandPhase::commit) commit(round->second, engine, now);
  if (order.phase == CommandPhase::cancel) rounds_.erase(round);
}

void NodeCommands::prepare(const CommandOrder& order, const MonitorEngine& engine,
                           const std::vector<RankIdentity>& ranks, Clock::time_point now) {
  Round round{order, now + kPrepared, false, {}, {}};
  const bool is_known = is_command(order.command);
  const bool has_room = rounds_.size() < kMaxRounds;
  for (const std::int64_t pid : order.pids) {
    CommandRank& rank = round.ranks.emplace_back();
    rank.node = node_;
    rank.pid = pid;
    const auto identity =
        std::find_if(ranks.begin(), ranks.end(), [pid](const RankIdentity& of) { return of.pid == pid; });
    if (identity != ranks.end()) rank.rank = identity->rank;
    const auto can = engine.recordings().recorder_of(pid);
    rank.ok = is_known && has_room && can.ok();
    rank.text = !is_known   ? "its agent does not know this command: update it"
                : !has_room ? "its agent has too many commands"
                : !can      ? can.error().message
                            : "";
  }
  answer(round, CommandPhase::prepare);
  if (has_room) rounds_.emplace(order.id, std::move(round));
}

// Ranks with one recorder are dumped together.
void NodeCommands::commit(Round& round, MonitorEngine& engine, Clock::time_point now) {
  round.is_committed = true;
  round.deadline = now + kPatience;
  std::map<std::string, std::set<std::int64_t>> of_recorder;
  for (CommandRank& rank : round.ranks) {
    const auto recorder = engine.recordings().recorder_of(rank.pid);
    rank.ok = false;
    rank.text = recorder ? "" : recorder.error().message;
    if (recorder) of_recorder[*recorder].insert(rank.pid);
  }
  for (const auto& [recorder, pids] : of_recorder) {
    const std::string request = fmt::format("{:016x}.{}", round.order.id, round.waiting.size());
    const auto asked = engine.ask_for_dump(*pids.begin(), request);
    if (asked) round.waiting[request] = pids;
    for (CommandRank& rank : round.ranks) {
      if (!asked && pids.contains(rank.pid)) rank.text = asked.error().message;
    }
  }
  if (round.waiting.empty()) answer(round, CommandPhase::commit);
}

void NodeCommands::take_events(const std::vector<MonitorEvent>& events) {
  for (const MonitorEvent& event : events) {
    if (event.kind != MonitorEventKind::incident || !event.incident || event.incident->dump.request.empty()) continue;
    const LiveDump& dump = event.incident->dump;
    for (auto& [id, round] : rounds_) {
      const auto waiting = round.waiting.find(dump.request);
      if (waiting == round.waiting.end()) continue;
      for (CommandRank& rank : round.ranks) {
        if (!waiting->second.contains(rank.pid)) continue;
        rank.ok = !dump.paths.empty() && dump.problem.empty();
        rank.text = dump_text(dump);
      }
      round.waiting.erase(waiting);
      if (round.waiting.empty()) answer(round, CommandPhase::commit);
    }
  }
}

void NodeCommands::update(Clock::time_point now) {
  for (auto& [id, round] : rounds_) {
    if (now < round.deadline || round.waiting.empty()) continue;
    for (const auto& [request, pids] : std::exchange(round.waiting, {})) {
      for (CommandRank& rank : round.ranks) {
        if (pids.contains(rank.pid)) rank.text = "its recorder did not answer in time";
      }
    }
    answer(round, CommandPhase::commit);
  }
  std::erase_if(rounds_, [now](const auto& round) { return now >= round.second.deadline; });
}

void NodeCommands::answer(const Round& round, CommandPhase phase) {
  answers_.push_back({round.order.id, phase, node_, round.ranks});
}

}  // namespace tidemark
