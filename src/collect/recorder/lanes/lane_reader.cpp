#include "collect/recorder/lanes/lane_reader.h"

#include <cstring>

namespace tidemark {

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

// To the next chunk of the chain, if one is linked and this one has been read to its end.
bool LaneReader::advance() {
  const std::uint32_t next = current_ == 0 ? lane_->head.load(std::memory_order_acquire)
                                           : shared_->chunks[current_ - 1].next.load(std::memory_order_acquire);
  if (next == 0 || chunk_at(next) == nullptr) return false;
  // The link is written after the last commit, so what is committed now is all there will be.
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

}  // namespace tidemark
