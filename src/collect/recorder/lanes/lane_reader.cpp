#include "collect/recorder/lanes/lane_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "collect/ring/layout.h"

namespace tidemark {
namespace {

struct ClockReading {
  std::uint64_t ticks;
  std::uint64_t ns;
};

// The shortest of several brackets: the reading least disturbed by interrupts.
ClockReading read_both(ring::Clock clock) {
  ClockReading best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint64_t before = ring::monotonic_ns();
    const std::uint64_t ticks = ring::ticks(clock);
    const std::uint64_t after = ring::monotonic_ns();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {ticks, before + (after - before) / 2};
    }
  }
  return best;
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::map(ScopedFd fd) {
  struct stat facts {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  const bool usable = ::fstat(fd.get(), &facts) == 0 && facts.st_size == static_cast<off_t>(sizeof(ring::Shared)) &&
                      seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  void* mapped =
      usable ? ::mmap(nullptr, sizeof(ring::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0) : MAP_FAILED;
  if (usable && mapped == MAP_FAILED) {
    return Error{fmt::format("its memory cannot be mapped: {}", std::strerror(errno))};
  }
  if (!usable) return Error{"it offered memory that is not a ring of this version of tidemark"};
  auto memory = std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<ring::Shared*>(mapped)));
  const ring::Control& control = memory->get()->control;
  if (control.magic != ring::kMagic || control.version != ring::kVersion) {
    return Error{"it uses the library of another version of tidemark"};
  }
  return memory;
}

SharedMemory::~SharedMemory() {
  ::munmap(shared_, sizeof(ring::Shared));
}

ring::Chunk* LaneReader::chunk_at(std::uint32_t number) {
  if (number == 0 || number > ring::kChunkCount) {
    broken_ = true;
    return nullptr;
  }
  return &shared_->chunks[number - 1];
}

void LaneReader::recycle(std::uint32_t number) {
  ring::Chunk& chunk = shared_->chunks[number - 1];
  chunk.committed.store(0, std::memory_order_relaxed);
  chunk.next.store(0, std::memory_order_relaxed);
  const std::uint32_t index = number - 1;
  shared_->free_chunks[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_release);
}

// Moves to the next chunk of the chain, if one is linked and this one has been read to its end.
bool LaneReader::advance() {
  const std::uint32_t next = current_ == 0 ? lane_->head.load(std::memory_order_acquire)
                                           : shared_->chunks[current_ - 1].next.load(std::memory_order_acquire);
  if (next == 0 || chunk_at(next) == nullptr) return false;
  // The link is written after the last commit, so the chunk's committed size is final.
  if (current_ != 0) {
    if (shared_->chunks[current_ - 1].committed.load(std::memory_order_acquire) / 8 > read_) return true;
    recycle(current_);
  }
  current_ = next;
  read_ = 0;
  return true;
}

bool LaneReader::next(RingRecord& record) {
  for (int hops = 0; !broken_ && hops < 3; ++hops) {
    if (current_ != 0) {
      const ring::Chunk& chunk = shared_->chunks[current_ - 1];
      const std::size_t committed = chunk.committed.load(std::memory_order_acquire) / 8;
      if (committed > ring::Chunk::kPayloadBytes / 8) {
        broken_ = true;
        return false;
      }
      if (read_ < committed) {
        std::memcpy(&record.header, &chunk.payload[read_], sizeof(record.header));
        if (record.header.words == 0 || read_ + record.header.words > committed) {
          broken_ = true;
          return false;
        }
        std::memcpy(record.words.data(), &chunk.payload[read_], record.header.words * sizeof(std::uint64_t));
        read_ += record.header.words;
        return true;
      }
    }
    if (!advance()) return false;
  }
  return false;
}

ring::Clock choose_clock() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  if (std::getline(file, source) && source == "tsc") return ring::Clock::tsc;
#endif
  return ring::Clock::monotonic;
}

TickClock::TickClock(ring::Clock clock) : clock_(clock) {
  if (clock == ring::Clock::monotonic) return;
  const ClockReading first = read_both(clock);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const ClockReading second = read_both(clock);
  const auto ns = static_cast<uint128>(second.ns - first.ns);
  ns_per_tick_ = static_cast<std::uint64_t>((ns << kShift) / (second.ticks - first.ticks));
}

std::uint64_t TickClock::now() const {
  return ring::ticks(clock_);
}

std::uint64_t TickClock::wall_ns(std::uint64_t ticks) const {
  const std::uint64_t here = now();
  const auto wall = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  return wall - between_ns(ticks, here) + between_ns(here, ticks);
}

}  // namespace tidemark
