// Autograd records of lanes become nodes and numbers of the events after them.
#include <gtest/gtest.h>

#include "collect/recorder/session/session.h"
#include "ring_process.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

class AutogradNodesTest : public ::testing::Test {
 protected:
  AutogradNodesTest() {
    auto memory = SharedMemory::map(ScopedFd(process.duplicate()));
    EXPECT_TRUE(memory.ok());
    session = std::make_unique<Session>(std::move(*memory), clock, write_to(&bytes), ProcessInfo{}, Session::Limits{});
  }

  static void define_node(RingThread& thread, std::uint32_t number, std::uint64_t maker, bool python,
                          const char* name) {
    process::DefinitionWriter definition(&thread.writer, ring::DefinitionKind::autograd_node);
    definition.u32(number);
    definition.u64(maker);
    definition.u32(python ? 1 : 0);
    definition.text(name);
    EXPECT_TRUE(definition.finish());
  }
  static void tell_thread(RingThread& thread, std::uint64_t number) {
    process::DefinitionWriter definition(&thread.writer, ring::DefinitionKind::autograd_thread);
    definition.u64(number);
    EXPECT_TRUE(definition.finish());
  }
  static void tell(RingThread& thread, std::uint32_t code, std::initializer_list<std::uint64_t> numbers) {
    thread.put(ring::RecordKind::autograd, {}, code, numbers);
  }
  /// "next 7, node 5 of f::Node made by 4711"; zero and missing values are left out.
  static std::string describe_node(const Recording& recording, const Event& event) {
    std::string text;
    if (event.sequence != 0) text = "next " + std::to_string(event.sequence);
    if (!event.node.valid()) return text;
    const AutogradNode& node = recording.definitions.autograd_nodes.at(event.node.value);
    text +=
        ", node " + std::to_string(event.node_sequence) + " of " + recording.definitions.strings.at(node.type.value);
    if (!node.forward_thread.valid()) return text;
    return text + " made by " + std::to_string(*recording.definitions.threads.at(node.forward_thread.value).tid);
  }

  TickClock clock{ring::Clock::monotonic};
  RingProcess process;
  Bytes bytes;
  std::unique_ptr<Session> session;
};

TEST_F(AutogradNodesTest, BelongToTheAllocationsBehindThem) {
  RingThread thread(process, 0, 4711);
  tell_thread(thread, 9);
  thread.allocate(100, 0x1000, 512);
  tell(thread, 0, {3});
  thread.allocate(200, 0x2000, 512);
  define_node(thread, 0, 9, false, "N1f4NodeE");
  define_node(thread, 1, 8, true, "ScaleBackward");
  tell(thread, 1, {3, 2});
  thread.allocate(300, 0x3000, 512);
  thread.allocate(400, 0x4000, 512);
  tell(thread, 2, {4, ~std::uint64_t{0}});
  thread.allocate(500, 0x5000, 512);
  thread.put(ring::RecordKind::reset, {}, 0, {});
  thread.allocate(600, 0x6000, 512);
  tell(thread, 1, {5, 1});  // has not been defined again
  thread.allocate(700, 0x7000, 512);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  std::vector<std::string> found;
  for (const Event& event : recording.events) found.push_back(describe_node(recording, event));
  EXPECT_EQ(found, (std::vector<std::string>{
                       "", "next 3", "next 3, node 2 of f::Node made by 4711", "next 3, node 2 of f::Node made by 4711",
                       "next 4, node 18446744073709551615 of ScaleBackward", "next 4", "next 5"}));
  EXPECT_TRUE(recording.definitions.losses.empty());
}

TEST_F(AutogradNodesTest, TheThreadThatMadeANodeMayBeReadLater) {
  RingThread backward(process, 0, 1);
  RingThread forward(process, 1, 2);
  define_node(backward, 0, 5, false, "4Node");
  tell(backward, 1, {1, 7});
  backward.allocate(200, 0x1000, 512);
  forward.lane().busy.store(1);  // in the middle of its records: later events of others wait
  ASSERT_TRUE(session->drain().ok());
  forward.lane().busy.store(0);
  tell_thread(forward, 5);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  ASSERT_EQ(recording.events.size(), 1U);
  EXPECT_EQ(describe_node(recording, recording.events[0]), "next 1, node 7 of Node made by 2");
}

TEST_F(AutogradNodesTest, RecordsOfAnotherLengthAreCounted) {
  RingThread thread(process, 0, 1);
  tell(thread, 0, {1, 2});
  tell(thread, 1, {1});
  thread.allocate(100, 0x1000, 512);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  EXPECT_EQ(describe_node(recording, recording.events.at(0)), "");
  ASSERT_EQ(recording.definitions.losses.size(), 1U);
  EXPECT_EQ(recording.definitions.losses[0].kind, QualityId::invalid_records);
  EXPECT_EQ(recording.definitions.losses[0].count, 2U);
}

}  // namespace
}  // namespace tidemark::testing
