// The object at an address and its name, for any order in which the lanes of a process are drained.
#include "collect/recorder/lanes/nn_modules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trace_test_support.h"

namespace tidemark {
namespace {

using testing::Bytes;
using testing::read_all;
using testing::write_to;

constexpr std::uint64_t kHere = 0x1000;
constexpr std::uint64_t kRoot = 0x2000;

struct History {
  Bytes bytes;
  std::unique_ptr<TraceWriter> writer = write_to(&bytes);
  NnModules modules;
  std::map<std::uint64_t, NnModuleId> met;  ///< at kHere, by generation

  void meet(std::uint64_t generation) { met[generation] = modules.id(kHere, generation, *writer); }
  void name(std::uint64_t generation, std::uint64_t ticks, const char* path) {
    modules.name(kHere, {ticks, generation, kRoot, writer->string(path), writer->string("a.Class")}, *writer);
  }
  void die(std::uint64_t address, std::uint64_t generation) { modules.died(address, generation, *writer); }

  /// Names of the object seen in each generation, as a reader finds them: the latest name; "" for none.
  std::map<std::uint64_t, std::string> names() {
    EXPECT_TRUE(writer->finish({}).ok());
    const auto recording = read_all(bytes);
    std::map<std::uint64_t, std::string> found;
    for (const auto& [generation, id] : met) {
      found[generation] = "";
      for (const NnModuleName& name : recording.definitions.nn_module_names) {
        if (name.module.value != id.value) continue;
        found[generation] = name.path.valid() ? recording.definitions.strings.at(name.path.value) : "";
      }
    }
    return found;
  }
};

using Lane = std::vector<std::function<void(History&)>>;

/// Calls `check` with the names after each order in which the lanes may be drained.
void for_each_order(const std::vector<Lane>& lanes, std::vector<std::size_t> done, std::vector<std::size_t> order,
                    const std::function<void(History&)>& check) {
  bool complete = true;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (done[lane] == lanes[lane].size()) continue;
    complete = false;
    ++done[lane];
    order.push_back(lane);
    for_each_order(lanes, done, order, check);
    order.pop_back();
    --done[lane];
  }
  if (!complete) return;
  History history;
  std::vector<std::size_t> next(lanes.size());
  for (const std::size_t lane : order) lanes[lane][next[lane]++](history);
  SCOPED_TRACE(::testing::PrintToString(order));
  check(history);
}

void for_each_order(const std::vector<Lane>& lanes, const std::function<void(History&)>& check) {
  for_each_order(lanes, std::vector<std::size_t>(lanes.size()), {}, check);
}

TEST(NnModules, AnObjectIsOneWhileOthersDie) {
  History history;
  history.meet(0);
  history.die(0x3000, 1);
  history.meet(1);
  EXPECT_EQ(history.met[0].value, history.met[1].value);
  history.die(kHere, 2);
  history.meet(2);
  EXPECT_NE(history.met[1].value, history.met[2].value);
}

TEST(NnModules, AnAddressThatIsUsedAgainIsAnotherObject) {
  // One thread names both modules, another calls them, a third one drops the first.
  const std::vector<Lane> lanes = {
      {[](History& h) { h.name(0, 10, "first"); }, [](History& h) { h.name(2, 20, "second"); }},
      {[](History& h) { h.meet(0); }, [](History& h) { h.meet(1); }, [](History& h) { h.meet(2); }},
      {[](History& h) { h.die(0x3000, 1); }, [](History& h) { h.die(kHere, 2); }},
  };
  std::size_t orders = 0;
  for_each_order(lanes, [&](History& history) {
    ++orders;
    const std::map<std::uint64_t, std::string> expected = {{0, "first"}, {1, "first"}, {2, "second"}};
    EXPECT_EQ(history.names(), expected);
  });
  EXPECT_EQ(orders, 210U);  // 7! / (2! 3! 2!)
}

TEST(NnModules, UnnamedObjectGetsNoOtherName) {
  const std::vector<Lane> lanes = {
      {[](History& h) { h.name(0, 10, "first"); }},
      {[](History& h) { h.meet(0); }, [](History& h) { h.meet(1); }},
      {[](History& h) { h.die(kHere, 1); }},
  };
  for_each_order(lanes, [&](History& history) {
    const std::map<std::uint64_t, std::string> expected = {{0, "first"}, {1, ""}};
    EXPECT_EQ(history.names(), expected);
  });
}

TEST(NnModules, LatestNameCounts) {
  const std::vector<Lane> lanes = {
      {[](History& h) { h.meet(0); }},
      {[](History& h) { h.name(0, 20, "model.layer"); }},
      {[](History& h) { h.name(0, 10, ""); }},
  };
  for_each_order(lanes, [&](History& history) {
    const std::map<std::uint64_t, std::string> expected = {{0, "model.layer"}};
    EXPECT_EQ(history.names(), expected);
  });
}

// A program that builds its model repeatedly: a module of it dies, another one is made at the same address.
TEST(NnModules, RemembersTheLatestLives) {
  History history;
  constexpr std::uint64_t kLives = 2000;
  for (std::uint64_t life = 0; life < kLives; ++life) {
    history.meet(life);
    history.name(life, life, life % 2 == 0 ? "even" : "odd");
    history.die(kHere, life + 1);
  }
  history.meet(kLives);
  std::set<std::uint32_t> ids;
  for (const auto& [generation, id] : history.met) ids.insert(id.value);
  EXPECT_EQ(ids.size(), kLives + 1) << "each is another object";
  history.meet(5);
  history.meet(6);
  EXPECT_EQ(history.met[5].value, history.met[6].value) << "told so late that they are not told apart";
  const auto names = history.names();
  EXPECT_EQ(names.at(kLives - 1), "odd");
  EXPECT_EQ(names.at(kLives - 2), "even");
  EXPECT_EQ(names.at(kLives), "");
  EXPECT_EQ(names.at(5), "");
}

TEST(NnModules, ALostDeathDoesNotMakeAllLaterOnesUncertain) {
  History history;
  for (std::uint64_t generation = 2; generation < 100'000; ++generation) history.die(0x3000, generation);  // not 1
  history.meet(99'000);
  history.meet(99'001);
  EXPECT_EQ(history.met[99'000].value, history.met[99'001].value);
}

TEST(NnModules, TakesAnyNumbers) {
  History history;
  const std::uint64_t most = ~std::uint64_t{0};
  history.die(kHere, most);
  history.die(kHere, 0);
  history.name(most, most, "a");
  history.modules.name(kRoot, {1, most, kHere, history.writer->string("b"), {}}, *history.writer);
  history.meet(most);
  EXPECT_EQ(history.names().at(most), "a");
}

}  // namespace
}  // namespace tidemark
