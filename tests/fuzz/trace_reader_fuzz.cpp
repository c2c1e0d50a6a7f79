// Fuzz target of the recording reader: whatever the bytes, it must end without a crash, a hang or a broken promise.
// Each input is read as it is, and once more with its checksums put right, since no mutation gets past those by chance.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "trace/format.h"
#include "trace/reader.h"
#include "trace/varint.h"

namespace {

using namespace tidemark;

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise of the reader: %s\n", promise);
  std::abort();
}

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
  void follow(const Event& event) {
    if (event.kind == EventKind::allocate) {
      require(event.slot.value <= sizes_.size(), "slots are dense");
      if (event.slot.value == sizes_.size()) {
        sizes_.push_back(0);
        alive_.push_back(false);
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
};

void read_whole(std::span<const std::byte> bytes) {
  const auto opened = TraceReader::from_memory(bytes, "input");
  if (!opened.ok()) return;
  TraceReader& reader = **opened;
  std::vector<Event> batch;
  LiveBlocks blocks;
  while (true) {
    const auto more = reader.next(batch);
    require(more.ok(), "reading memory does not fail");
    if (!*more) break;
    require(!batch.empty() && batch.size() <= format::kMaxFrameEvents, "a batch holds a frame's events");
    for (const Event& event : batch) {
      require(in_table(event.stack, reader.definitions().stacks.size()), "an event's stack is defined");
      require(in_table(event.thread, reader.definitions().threads.size()), "an event's thread is defined");
      blocks.follow(event);
    }
  }
  check_definitions(reader.definitions());
  require(reader.offset() <= bytes.size(), "no more is read than there is");
}

void repair_checksums(std::vector<std::byte>& bytes) {
  if (bytes.size() < format::kFileHeaderBytes) return;
  const std::span<std::byte> all(bytes);
  store_le(bytes.data() + 12, crc32c(all.first(12)));
  std::size_t at = format::kFileHeaderBytes;
  while (bytes.size() - at >= format::kFrameHeaderBytes) {
    const auto stored = load_le<std::uint32_t>(bytes.data() + at + 4);
    if (stored > bytes.size() - at - format::kFrameHeaderBytes) return;
    const auto payload = all.subspan(at + format::kFrameHeaderBytes, stored);
    store_le(bytes.data() + at + 12, crc32c(payload, crc32c(all.subspan(at, 12))));
    at += format::kFrameHeaderBytes + stored;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  for (const std::uint8_t byte : std::span(data, size)) bytes.push_back(std::byte{byte});
  read_whole(bytes);
  repair_checksums(bytes);
  read_whole(bytes);
  return 0;
}
