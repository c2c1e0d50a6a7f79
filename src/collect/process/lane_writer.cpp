#include "collect/process/lane_writer.h"

namespace tidemark::process {
namespace {

// Takes the lowest free chunk, so that a process with few events touches few pages. Lock-free; 0 = none.
std::uint32_t take_chunk(ring::Shared* shared) noexcept {
  for (std::size_t word = 0; word < ring::kBitmapWords; ++word) {
    std::uint64_t free = shared->free_chunks[word].load(std::memory_order_acquire);
    while (free != 0) {
      const std::uint64_t lowest = free & (~free + 1);
      if (shared->free_chunks[word].compare_exchange_weak(free, free & ~lowest, std::memory_order_acq_rel)) {
        return static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(__builtin_ctzll(lowest)) + 1);
      }
    }
  }
  return 0;
}

}  // namespace

bool LaneWriter::next_chunk() noexcept {
  const std::uint32_t number = take_chunk(shared_);
  if (number == 0) return false;
  ring::Chunk* chunk = &shared_->chunks[number - 1];  // the recorder cleared its words before freeing it
  std::atomic<std::uint32_t>& link = chunk_ == nullptr ? lane_->head : chunk_->next;
  chunk_ = chunk;
  used_ = 0;
  link.store(number, std::memory_order_release);
  return true;
}

}  // namespace tidemark::process
