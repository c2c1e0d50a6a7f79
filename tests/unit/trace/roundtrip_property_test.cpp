// Random recordings, written and read back. Expected values come from a separate simple model (std::map and std::set
// instead of the writer's hash map and bitmaps).
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

constexpr std::uint32_t kStacks = 40;
constexpr std::uint32_t kThreads = 3;
constexpr std::uint32_t kNodes = 4;

/// Attributes of an allocation in a thread's forward pass, in a backward pass, or outside both.
void attribute(Event& event) {
  event.sequence = *rc::gen::element<std::uint64_t>(0, 7, 8, 100'000, ~std::uint64_t{0});
  const auto node = *rc::gen::inRange<std::uint32_t>(0, kNodes + 1);
  if (node == kNodes) return;
  event.node = {node};
  event.node_sequence = *rc::gen::inRange<std::uint64_t>(0, 1000);
}

Event random_event(std::uint64_t& clock, bool attributed) {
  const auto roll = *rc::gen::inRange(0, 100);
  Event event;
  event.kind = roll < 50   ? EventKind::allocate
               : roll < 90 ? EventKind::free
               : roll < 93 ? EventKind::release
               : roll < 96 ? EventKind::out_of_memory
               : roll < 98 ? EventKind::pause
                           : EventKind::resume;
  // Mostly forward, now and then back, now and then far away.
  const auto step = *rc::gen::inRange(0, 20);
  clock += step == 0 ? *rc::gen::arbitrary<std::uint64_t>() : *rc::gen::inRange<std::uint64_t>(0, 5000) - 200;
  event.time_ns = clock;
  const auto thread = *rc::gen::inRange<std::uint32_t>(0, kThreads + 1);
  event.thread = thread == kThreads ? ThreadId{} : ThreadId{thread};
  if (event.kind == EventKind::pause || event.kind == EventKind::resume) return event;

  // Few addresses and devices: reuse, allocation at a live address and frees of the unknown all come up.
  event.device = *rc::gen::element(Device{}, Device{DeviceType::cuda, 0}, Device{DeviceType::cuda, 1},
                                   Device{static_cast<DeviceType>(-3), -1});
  event.has_totals = event.device.type != DeviceType::cpu && *rc::gen::inRange(0, 8) != 0;
  if (event.has_totals) {
    event.total_allocated = *rc::gen::inRange<std::uint64_t>(0, 4) * 512;
    event.total_reserved = *rc::gen::element<std::uint64_t>(0, 1 << 21, ~std::uint64_t{0});
  }
  if (event.kind == EventKind::release) return event;
  if (event.kind != EventKind::out_of_memory) {
    event.address = *rc::gen::inRange(0, 50) == 0 ? std::max<std::uint64_t>(1, *rc::gen::arbitrary<std::uint64_t>())
                                                  : 0x7f00'0000'0000U + *rc::gen::inRange<std::uint64_t>(0, 24) * 512;
  }
  if (event.kind != EventKind::free) {
    event.size = *rc::gen::inRange(0, 20) == 0 ? *rc::gen::arbitrary<std::uint64_t>()
                                               : *rc::gen::inRange<std::uint64_t>(0, 5) * 512;
    const auto stack = *rc::gen::inRange<std::uint32_t>(0, kStacks + 1);
    event.stack = stack == kStacks ? StackId{} : StackId{stack};
    if (attributed) attribute(event);
  }
  return event;
}

/// Expected output of a reader for these events.
class Model {
 public:
  void add(Event event) {
    if (event.kind == EventKind::allocate) {
      if (live_.contains(key(event))) {
        Event implied = free_at(event.time_ns, event.address, event.device);
        implied.thread = event.thread;
        add(implied);
      }
      std::uint32_t slot = 0;
      while (used_.contains(slot)) ++slot;
      used_.insert(slot);
      event.slot = {slot};
      live_[key(event)] = event;
    } else if (event.kind == EventKind::free) {
      event.size = 0;
      if (const auto found = live_.find(key(event)); found != live_.end()) {
        event.slot = found->second.slot;
        event.size = found->second.size;
        used_.erase(event.slot.value);
        live_.erase(found);
      }
    }
    lines.push_back(describe(event));
  }

  std::vector<std::string> lines;

 private:
  using Key = std::tuple<std::uint64_t, int, int>;
  static Key key(const Event& event) {
    return {event.address, static_cast<int>(event.device.type), event.device.index};
  }
  std::map<Key, Event> live_;
  std::set<std::uint32_t> used_;
};

void define_tables(TraceWriter& writer) {
  StackId parent;
  for (std::uint32_t n = 0; n < kStacks; ++n) {
    const Location location{.file = writer.string("train.py"), .function = {}, .line = n, .module = {}};
    parent = writer.stack(n % 7 == 0 ? StackId{} : parent, writer.location(location));
  }
  for (std::uint32_t n = 0; n < kThreads; ++n) writer.thread({n, "thread"});
  for (std::uint32_t n = 0; n < kNodes; ++n) writer.autograd_node({writer.string(std::to_string(n)), {n % kThreads}});
}

std::vector<std::string> described(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(describe(event));
  return lines;
}

TEST(RoundTripProperty, EventsComeBackAsTheyWere) {
  EXPECT_TRUE(rc::check([] {
    Bytes bytes;
    Model model;
    const auto writer = write_to(&bytes);
    define_tables(*writer);
    std::uint64_t clock = 0;
    const auto count = *rc::gen::inRange(0, 400);
    const auto attributed_from = *rc::gen::inRange(0, 400);
    for (int n = 0; n < count; ++n) {
      const Event event = random_event(clock, n >= attributed_from);
      model.add(event);
      RC_ASSERT(writer->event(event).ok());
      if (*rc::gen::inRange(0, 50) == 0) RC_ASSERT(writer->flush().ok());
      RC_ASSERT(writer->bytes_written() == bytes.size());
    }
    const std::uint64_t bound = writer->bytes_written() + writer->bytes_pending();
    RC_ASSERT(writer->flush().ok());
    RC_ASSERT(bytes.size() <= bound);
    RC_ASSERT(writer->finish({clock, true}).ok());
    const Recording read = read_all(bytes);
    RC_ASSERT(read.error.empty());
    RC_ASSERT(read.definitions.losses.empty());
    RC_ASSERT(read.definitions.end.has_value());
    RC_ASSERT(described(read.events) == model.lines);
  }));
}

TEST(RoundTripProperty, AnyCutReadsAPrefixAndCountsTheRest) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  define_tables(*writer);
  std::vector<std::size_t> ends = {bytes.size()};  // of the frames after which more events are readable
  std::vector<std::size_t> events_by_then = {0};
  std::vector<std::string> lines;
  for (std::uint64_t n = 0; n < 300; ++n) {
    ASSERT_TRUE(writer->event(n % 3 == 2 ? free_at(n * 1000, n - 1) : allocate(n * 1000, n, 64 * n)).ok());
    if (n % 60 == 59) {
      ASSERT_TRUE(writer->flush().ok());
      ends.push_back(bytes.size());
      events_by_then.push_back(n + 1);
    }
  }
  ASSERT_TRUE(writer->finish({}).ok());
  const auto whole = described(read_all(bytes).events);
  ASSERT_EQ(whole.size(), 300U);

  std::size_t stage = 0;
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    const Recording read = read_all(part);
    if (cut < 16) {
      ASSERT_NE(read.error.find("memory"), std::string::npos) << cut;
      continue;
    }
    ASSERT_EQ(read.error, "") << cut;
    while (stage + 1 < ends.size() && ends[stage + 1] <= cut) ++stage;
    ASSERT_EQ(read.events.size(), events_by_then[stage]) << cut;
    const auto lines_read = described(read.events);
    ASSERT_TRUE(std::equal(lines_read.begin(), lines_read.end(), whole.begin())) << cut;
    if (cut >= ends[0] && std::find(ends.begin(), ends.end(), cut) != ends.end()) {
      ASSERT_EQ(read.lost(Loss::Kind::torn_tail), 0U) << cut;
    }
  }
}

TEST(RoundTripProperty, AFlippedByteIsNoticed) {
  EXPECT_TRUE(rc::check([] {
    Bytes bytes;
    const auto writer = write_to(&bytes);
    define_tables(*writer);
    std::uint64_t clock = 0;
    for (int n = 0; n < 100; ++n) RC_ASSERT(writer->event(random_event(clock, n % 2 == 0)).ok());
    RC_ASSERT(writer->finish({clock, true}).ok());
    const auto whole = described(read_all(bytes).events);

    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] ^= std::byte{*rc::gen::inRange<std::uint8_t>(1, 255)};
    const Recording read = read_all(bytes);
    RC_ASSERT(!read.error.empty() || read.lost(Loss::Kind::torn_tail) > 0);
    RC_ASSERT(read.error.empty() == (at >= 16));
    const auto lines = described(read.events);
    RC_ASSERT(lines.size() <= whole.size());
    RC_ASSERT(std::equal(lines.begin(), lines.end(), whole.begin()));
  }));
}

}  // namespace
}  // namespace tidemark::testing
