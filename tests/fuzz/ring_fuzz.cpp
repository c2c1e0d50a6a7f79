// Fuzz target of the recorder's side of a ring: whatever a process writes into its memory, and whenever, its recording
// comes to an end and can be read.
//
// The input is a script of writes to the memory, with the recorder's looks at it in between:
//
//   0 chunk u16 bytes       append as many bytes to the chunk, rounded up to words, and commit them
//   1 lane u16              Lane::head
//   2 chunk u16             Chunk::next
//   3 chunk u32             Chunk::committed
//   4 chunk u16 u64         overwrite that word of the payload
//   5                       the recorder looks
//   6 lane u8 u8 u8         Lane::owner, busy, dropped
//   7 u64                   Control::start_ticks
//
// Its first byte is the size limit of the recording in KiB, 0 for none. make_ring_seeds.py writes the seeds.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "collect/recorder/session/session.h"
#include "fuzz/require.h"
#include "trace/reader.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

/// The input, followed by zeros.
class Script {
 public:
  explicit Script(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  [[nodiscard]] bool ended() const { return rest_.empty(); }
  template <typename T>
  T number() {
    T value{};
    const auto raw = bytes(sizeof(T));
    if (!raw.empty()) std::memcpy(&value, raw.data(), raw.size());
    return value;
  }
  std::span<const std::uint8_t> bytes(std::size_t size) {
    const auto taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

/// The process's side of the memory, reused for each input.
class Process {
 public:
  Process() : fd_(::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(fd_, sizeof(ring::Shared)) != 0 || ::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) std::abort();
    void* mapped = ::mmap(nullptr, sizeof(ring::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) std::abort();
    shared_ = static_cast<ring::Shared*>(mapped);
  }

  /// Resets it to the beginning of a process.
  std::unique_ptr<SharedMemory> begin() {
    if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof(ring::Shared)) != 0) std::abort();
    shared_->control.magic = ring::kMagic;
    shared_->control.version = ring::kVersion;
    auto memory = SharedMemory::map(ScopedFd(::fcntl(fd_, F_DUPFD_CLOEXEC, 0)));
    require(memory.ok(), "a ring is taken");
    return std::move(*memory);
  }

  /// Executes the next step of the script; true if the recorder reads next.
  bool step(Script& script) {
    const auto operation = script.number<std::uint8_t>() % 8;
    if (operation == 5) return true;
    if (operation == 7) {
      shared_->control.start_ticks = script.number<std::uint64_t>();
      return false;
    }
    const auto number = script.number<std::uint8_t>();
    ring::Lane& lane = shared_->lanes[number % 4];
    ring::Chunk& chunk = shared_->chunks[number % 16];
    switch (operation) {
      case 0:
        append(chunk, script.bytes(script.number<std::uint16_t>()));
        break;
      case 1:
        lane.head.store(script.number<std::uint16_t>());
        break;
      case 2:
        chunk.next.store(script.number<std::uint16_t>());
        break;
      case 3:
        chunk.committed.store(script.number<std::uint32_t>());
        break;
      case 4: {
        const std::size_t word = script.number<std::uint16_t>() % std::size(chunk.payload);
        chunk.payload[word] = script.number<std::uint64_t>();
        break;
      }
      default:
        lane.owner.store(script.number<std::uint8_t>());
        lane.busy.store(script.number<std::uint8_t>());
        lane.dropped.store(script.number<std::uint8_t>());
        break;
    }
    return false;
  }

 private:
  static void append(ring::Chunk& chunk, std::span<const std::uint8_t> bytes) {
    const std::size_t used = chunk.committed.load() & ~std::uint32_t{7};
    if (used + bytes.size() > ring::Chunk::kPayloadBytes) return;
    if (!bytes.empty()) std::memcpy(reinterpret_cast<char*>(chunk.payload) + used, bytes.data(), bytes.size());
    chunk.committed.store(static_cast<std::uint32_t>(used + (bytes.size() + 7) / 8 * 8));
  }

  int fd_;
  ring::Shared* shared_ = nullptr;
};

/// All recorded events are read back.
void check(const std::vector<std::byte>& bytes, std::uint64_t event_count) {
  const auto reader = TraceReader::from_memory(bytes, "recording");
  require(reader.ok(), "what was recorded is a recording");
  std::uint64_t read = 0;
  std::vector<Event> batch;
  for (auto more = (*reader)->next(batch); more.ok() && *more; more = (*reader)->next(batch)) read += batch.size();
  require(read >= event_count, "every event is there");  // and frees of blocks whose addresses were reused
  require((*reader)->definitions().end.has_value(), "the recording can be read to its last record");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TickClock clock(ring::Clock::monotonic);
  static Process process;
  Script script({data, size});
  std::vector<std::byte> bytes;
  auto writer = TraceWriter::create(make_memory_sink(&bytes), ProcessInfo{});
  require(writer.ok(), "memory can be written");
  const std::uint64_t limit = script.number<std::uint8_t>() * std::uint64_t{1024};
  Session session(process.begin(), clock, std::move(*writer), ProcessInfo{}, {limit});
  while (!script.ended()) {
    if (process.step(script)) require(session.drain().ok(), "memory can be written");
  }
  require(session.finish(true).ok(), "memory can be written");
  check(bytes, session.event_count());
  return 0;
}
