// Frames for skipping events: after any skip, a reader has the right totals and peaks, and continues from a state as if
// it had read everything.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "trace/frames.h"
#include "trace/recording_state.h"
#include "trace/running_totals.h"
#include "unit/trace/random_program.h"

namespace tidemark::testing {
namespace {

constexpr std::uint64_t kEvents = 260'000;  // enough for two states

struct Checkpointed {
  Bytes bytes;
  Recording all;
  std::vector<std::uint64_t> states;                          ///< offsets of state frames
  std::vector<std::size_t> events_before;                     ///< how many each of them has before it
  std::vector<std::pair<std::size_t, RunningTotals>> totals;  ///< and how many events are before each
};

Checkpointed checkpointed(std::uint64_t seed) {
  Checkpointed made;
  const auto writer = write_to(&made.bytes);
  RandomProgram program({writer.get()}, seed);
  for (std::uint64_t event = 0; event < kEvents; ++event) {
    program.step(1000 + event * seed % 5000, 50);
    if (event % 30'000 == 0) {
      EXPECT_TRUE(writer->flush());  // a short frame in between
    }
  }
  EXPECT_TRUE(writer->finish({program.now_ns(), true}));
  made.all = read_all(made.bytes);
  auto reader = TraceReader::from_memory(made.bytes, "memory").value();
  Frame frame;
  std::vector<Event> batch;
  std::size_t events = 0;
  while (reader->next_frame(frame, batch).value()) {
    events += batch.size();
    const auto type = static_cast<format::FrameType>(frame.type);
    if (type == format::FrameType::totals) made.totals.emplace_back(events, decode_totals(frame.payload).value());
    if (type != format::FrameType::state) continue;
    made.states.push_back(frame.offset);
    made.events_before.push_back(events);
  }
  return made;
}

/// Worked out event by event.
void expect_totals(const Checkpointed& made) {
  std::map<std::pair<int, int>, DeviceRunningTotals> devices;
  std::size_t at = 0;
  for (const auto& [until, told] : made.totals) {
    EXPECT_GE(told.events, format::kMinTotalsEvents);
    EXPECT_EQ(told.events, until - at);
    for (; at < until; ++at) {
      const Event& event = made.all.events[at];
      DeviceRunningTotals& of = devices[{static_cast<int>(event.device.type), event.device.index}];
      of.device = event.device;
      of.live = held_after(event.kind, event.size, of.live);
      of.peak_live = std::max(of.peak_live, of.live);
      if (!event.has_totals) continue;
      of.has_totals = true;
      of.allocated = event.total_allocated;
      of.reserved = event.total_reserved;
      of.peak_allocated = std::max(of.peak_allocated, of.allocated);
      of.peak_reserved = std::max(of.peak_reserved, of.reserved);
    }
    EXPECT_EQ(told.time_ns, made.all.events[at - 1].time_ns);
    ASSERT_EQ(told.devices.size(), devices.size());
    for (const DeviceRunningTotals& of : told.devices) {
      DeviceRunningTotals& expected = devices[{static_cast<int>(of.device.type), of.device.index}];
      EXPECT_EQ(of, expected) << to_string(of.device) << " after " << until;
      expected.peak_live = expected.live;
      expected.peak_allocated = expected.allocated;
      expected.peak_reserved = expected.reserved;
    }
  }
}

TEST(Checkpoint, TotalsAreThoseOfEveryEvent) {
  for (const std::uint64_t seed : {1U, 2U}) {
    const Checkpointed made = checkpointed(seed);
    ASSERT_GE(made.totals.size(), kEvents / format::kMaxFrameEvents);
    expect_totals(made);
  }
}

TEST(Checkpoint, AReaderGoesOnFromAnyState) {
  const Checkpointed made = checkpointed(3);
  ASSERT_GE(made.states.size(), 2U);
  for (std::size_t state = 0; state < made.states.size(); ++state) {
    auto reader = TraceReader::from_memory(made.bytes, "memory").value();
    std::vector<Event> batch;
    // Some of the events before are read, which does not change the state.
    for (std::size_t frame = 0; frame < state; ++frame) ASSERT_TRUE(reader->next(batch).value());
    const std::size_t read = state * batch.size();
    reader->pass_over_until(made.states[state]);
    Recording rest;
    while (reader->next(batch).value()) rest.events.insert(rest.events.end(), batch.begin(), batch.end());
    rest.definitions = reader->definitions();
    expect_window(rest, made.all);
    EXPECT_EQ(reader->passed_over(), made.events_before[state] - read);
    EXPECT_TRUE(rest.definitions.losses.empty());
    // Slots too: later frees name the live blocks' slots.
    std::map<std::uint32_t, std::uint64_t> live;
    for (const Event& event : rest.events) {
      if (event.kind == EventKind::allocate) {
        EXPECT_TRUE(live.emplace(event.slot.value, event.address).second);
      } else if (event.kind == EventKind::free) {
        EXPECT_EQ(live.extract(event.slot.value).mapped(), event.address);
      }
    }
  }
}

TEST(Checkpoint, WhereNoStateIsTheRestIsDamage) {
  const Checkpointed made = checkpointed(3);
  auto reader = TraceReader::from_memory(made.bytes, "memory").value();
  reader->pass_over_until(made.states[0] + 1);
  std::vector<Event> batch;
  EXPECT_FALSE(reader->next(batch).value());
  ASSERT_EQ(reader->definitions().losses.size(), 1U);
  EXPECT_EQ(reader->definitions().losses[0].kind, QualityId::torn_tail);
}

TEST(Checkpoint, SmallRecordingsHaveNone) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  for (std::uint64_t event = 0; event < format::kMinTotalsEvents - 1; ++event) {
    ASSERT_TRUE(writer->event(allocate(event, 0x1000 * (1 + event), 512)));
  }
  ASSERT_TRUE(writer->finish({1'000'000, true}));
  auto reader = TraceReader::from_memory(bytes, "memory").value();
  Frame frame;
  std::vector<Event> batch;
  while (reader->next_frame(frame, batch).value()) {
    EXPECT_LE(frame.type, static_cast<std::uint8_t>(format::FrameType::samples));
  }
}

// State of a program that has paused recording, with a device without totals and one without blocks.
RecordingState paused_state() {
  RecordingState state;
  state.time_ns = 5000;
  state.thread_code = 1;
  state.paused = true;
  state.devices = {{{}, false, 0, 0}, {kProgramGpu, true, 700, 2048}, {{DeviceType::cuda, 1}, true, 1, 2}};
  state.device = 1;
  state.blocks = {{0, 1, 0x2000, 600, 40, StackId{1}, ThreadId{0}, 7, AutogradNodeId{0}, 9},
                  {9, 1, 0x1000, 100, 30, StackId{}, ThreadId{}, 0, AutogradNodeId{}, 0},
                  {12, 0, 0x1000, 5, 6000, StackId{0}, ThreadId{0}, 0, AutogradNodeId{}, 0}};
  state.expected[3] = 0x2000;
  state.recent.back() = ~std::uint64_t{0};
  return state;
}

constexpr DefinedIds kDefined = {.stacks = 2, .threads = 1, .autograd_nodes = 1};

/// The payload of the frame, with readable bytes behind it.
std::vector<std::uint8_t> payload_of(const RecordingState& state, Bytes& file) {
  file.clear();
  append_file_header(file);
  FrameEncoder frames;
  append_state_frame(state, frames, file);
  auto reader = FrameReader::open(make_memory_stream(file, "memory")).value();
  Frame frame;
  EXPECT_TRUE(reader->next(frame).value());
  std::vector<std::uint8_t> payload(frame.payload.begin(), frame.payload.end());
  payload.reserve(payload.size() + Frame::kPadding);
  return payload;
}

TEST(Checkpoint, StateRoundTrips) {
  Bytes file;
  const RecordingState state = paused_state();
  const std::vector<std::uint8_t> payload = payload_of(state, file);
  const auto read = decode_state(payload, kDefined);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->expected, state.expected);
  EXPECT_EQ(read->recent, state.recent);
  EXPECT_EQ(read->device, 1U);
  const std::vector<Event> events = read->lead_in();
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[0].kind, EventKind::pause);
  EXPECT_EQ(describe(events[1]), describe(state.lead_in()[1]));
  EXPECT_EQ(events[1].slot.value, 9U) << "in the order of allocation";
  EXPECT_FALSE(events[1].has_totals);
  EXPECT_TRUE(events[2].has_totals) << "the last of its device";
  EXPECT_EQ(events[2].total_allocated, 700U);
  EXPECT_EQ(events[2].node_sequence, 9U);
  EXPECT_EQ(events[3].time_ns, 5000U) << "never behind the state";
  EXPECT_EQ(events[4].kind, EventKind::resume);
  EXPECT_EQ(events[5].kind, EventKind::pause);
}

TEST(Checkpoint, RejectsInvalidStates) {
  Bytes file;
  const std::vector<std::uint8_t> payload = payload_of(paused_state(), file);
  EXPECT_TRUE(decode_state(payload, kDefined));
  EXPECT_FALSE(decode_state(payload, {.stacks = 1, .threads = 1, .autograd_nodes = 1}))
      << "a stack that is not defined";
  EXPECT_FALSE(decode_state(payload, {.stacks = 2, .autograd_nodes = 1}));
  EXPECT_FALSE(decode_state(payload, {.stacks = 2, .threads = 1}));
  for (std::size_t size = 0; size < payload.size(); ++size) {
    std::vector<std::uint8_t> cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
    cut.resize(size + Frame::kPadding);
    EXPECT_FALSE(decode_state(std::span(cut).first(size), kDefined)) << size;
  }
  RecordingState state = paused_state();
  state.blocks[2].slot = state.blocks[1].slot;
  EXPECT_FALSE(decode_state(payload_of(state, file), kDefined)) << "two blocks in a slot";
  state = paused_state();
  state.blocks[2].device = 3;
  EXPECT_FALSE(decode_state(payload_of(state, file), kDefined));
  state = paused_state();
  state.blocks[2].slot = format::kMaxStateSlots;
  EXPECT_FALSE(decode_state(payload_of(state, file), kDefined));
  EXPECT_FALSE(fits_in_state_frame(1, format::kMaxStateSlots + 1));
}

std::vector<std::uint8_t> hex_bytes(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  std::istringstream words(hex);
  for (std::string word; words >> word;) bytes.push_back(static_cast<std::uint8_t>(std::stoi(word, nullptr, 16)));
  return bytes;
}

// Worked out by hand, from docs/format.md.
TEST(Checkpoint, TotalsAreLaidOutAsThePageSays) {
  const RunningTotals totals{2, 1500, {{{}, 0, 512}, {{DeviceType::cuda, 1}, 3, 3, true, 3, 4, 64, 65}}};
  const std::vector<std::uint8_t> expected = hex_bytes(
      "02 dc 0b 02 "                     // events, time, devices
      "06 00 00 00 00 80 04 "            // cpu: no totals, nothing alive, 512 at most
      "09 02 02 01 03 03 03 04 40 41");  // cuda:1
  EXPECT_EQ(encode_totals(totals), expected);
  std::vector<std::uint8_t> readable = expected;
  readable.resize(expected.size() + Frame::kPadding);
  EXPECT_EQ(decode_totals(std::span(readable).first(expected.size())), totals);
  for (std::size_t size = 0; size < expected.size(); ++size) {
    std::vector<std::uint8_t> cut(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(size));
    cut.resize(size + Frame::kPadding);
    EXPECT_FALSE(decode_totals(std::span(cut).first(size))) << size;
  }
}

TEST(Checkpoint, AStateIsLaidOutAsThePageSays) {
  Bytes file;
  std::vector<std::uint8_t> payload = payload_of(paused_state(), file);
  const std::vector<std::uint8_t> expected = hex_bytes(
      "01 88 27 01 01 00 00 00 00 "              // paused, time, thread 0, device 1, slot, address, sequences
      "03 00 00 00 00 00 "                       // three devices: cpu without totals,
      "02 00 01 bc 05 80 10 02 02 01 01 02 "     // cuda:0 with 700 of 2048, cuda:1 with 1 of 2
      "03 03 00 09 03 03 01 01 00 "              // three blocks: slots 0, 9, 12; devices
      "06 80 80 01 ff 3f 00 04 d8 04 64 05 "     // addresses, sizes
      "03 02 00 01 04 50 13 a4 5d 03 01 00 01 "  // stacks, times, threads
      "03 0e 0d 00 03 01 00 00 03 12 11 00 "     // sequences, nodes, their sequences
      "83 08 00 00 00 80 80 01 ff 7f 00");       // 1,024 expected addresses; the fourth is one
  ASSERT_GT(payload.size(), expected.size());
  payload.resize(expected.size());
  EXPECT_EQ(payload, expected);
}

}  // namespace
}  // namespace tidemark::testing
