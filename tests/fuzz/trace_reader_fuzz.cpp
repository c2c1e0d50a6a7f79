// Fuzz target of the recording reader: for any bytes, it must end without a crash, a hang or a violated invariant. Each
// input is read unchanged, and once more with corrected checksums, because mutations do not get past them by chance.
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/repair_checksums.h"
#include "fuzz/require.h"
#include "trace/format.h"
#include "trace/frames.h"
#include "trace/reader.h"
#include "trace/running_totals.h"
#include "trace/varint.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

constexpr std::size_t kMostStates = 4;  // of one input, from which reading begins

template <typename Tag>
bool in_table(Id<Tag> id, std::size_t size) {
  return !id.valid() || id.value < size;
}

void check_definitions(const Definitions& all) {
  for (std::size_t n = 0; n < all.stacks.size(); ++n) {
    require(in_table(all.stacks[n].parent, n), "a stack's parent comes before it");
    require(in_table(all.stacks[n].location, all.locations.size()), "a stack's location is defined");
  }
  for (const Location& location : all.locations) {
    require(in_table(location.file, all.strings.size()), "a location's file is defined");
    require(in_table(location.function, all.strings.size()), "a location's function is defined");
    require(in_table(location.module, all.modules.size()), "a location's module is defined");
  }
  for (const ModuleInfo& module : all.modules) require(in_table(module.path, all.strings.size()), "a path is defined");
}

/// Follows the live blocks as a user of the events would.
class LiveBlocks {
 public:
  /// For events from the beginning on, or from a state frame.
  explicit LiveBlocks(bool from_beginning) : from_beginning_(from_beginning) {}

  void follow(const Event& event) {
    if (event.kind == EventKind::allocate) {
      require(!from_beginning_ || event.slot.value <= sizes_.size(), "slots are dense");
      require(event.slot.value < format::kMaxStateSlots + sizes_.size(), "slots of a state are bounded");
      if (event.slot.value >= sizes_.size()) {
        sizes_.resize(event.slot.value + 1);
        alive_.resize(sizes_.size());
      }
      require(!alive_[event.slot.value], "an allocation takes a slot that is not in use");
      alive_[event.slot.value] = true;
      sizes_[event.slot.value] = event.size;
    } else if (event.kind == EventKind::free && event.slot.valid()) {
      require(event.slot.value < sizes_.size() && alive_[event.slot.value], "a free with a slot has a live block");
      require(event.size == sizes_[event.slot.value], "a free has the size of its block");
      alive_[event.slot.value] = false;
    }
  }

 private:
  std::vector<std::uint64_t> sizes_;
  std::vector<bool> alive_;
  bool from_beginning_;
};

/// From the beginning on, or from the state frame at an offset.
void read_events(std::span<const std::byte> bytes, std::uint64_t state_offset) {
  const auto opened = TraceReader::from_memory(bytes, "input");
  if (!opened.ok()) return;
  TraceReader& reader = **opened;
  if (state_offset != 0) reader.pass_over_until(state_offset);
  std::vector<Event> batch;
  LiveBlocks blocks(state_offset == 0);
  while (true) {
    const auto more = reader.next(batch);
    require(more.ok(), "reading memory does not fail");
    if (!*more) break;
    require(!batch.empty() && batch.size() <= format::kMaxFrameEvents + format::kMaxStateBlocks + 3,
            "a batch holds the events of a frame, or the blocks of a state");
    for (const Event& event : batch) {
      require(in_table(event.stack, reader.definitions().stacks.size()), "an event's stack is defined");
      require(in_table(event.thread, reader.definitions().threads.size()), "an event's thread is defined");
      blocks.follow(event);
    }
  }
  check_definitions(reader.definitions());
  require(reader.offset() <= bytes.size(), "no more is read than there is");
}

void read_whole(std::span<const std::byte> bytes) {
  read_events(bytes, 0);
  const auto opened = FrameReader::open(make_memory_stream(bytes, "input"));
  if (!opened.ok()) return;
  std::vector<std::uint64_t> states;
  Frame frame;
  while ((*opened)->next(frame).value()) {
    const auto type = static_cast<format::FrameType>(frame.type);
    if (type == format::FrameType::state && states.size() < kMostStates) states.push_back(frame.offset);
    if (type != format::FrameType::totals || !frame.known) continue;
    const auto totals = decode_totals(frame.payload);
    require(!totals || totals->devices.size() <= frame.payload.size(), "totals take no more than their bytes");
  }
  for (const std::uint64_t offset : states) read_events(bytes, offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  for (const std::uint8_t byte : std::span(data, size)) bytes.push_back(std::byte{byte});
  read_whole(bytes);
  tidemark::testing::repair_checksums(bytes);
  read_whole(bytes);
  return 0;
}
