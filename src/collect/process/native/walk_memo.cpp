#include "collect/process/native/walk_memo.h"

#include <cstring>
#include <new>

#include "collect/process/key_table.h"

namespace tidemark::process {
namespace {

bool still_holds(const WalkRecord& record, const NativeContext& context, std::uintptr_t stop_low) {
  if (record.context.pc != context.pc || record.context.sp != context.sp || record.stop_low != stop_low) return false;
  if (record.reads_fp && record.context.fp != context.fp) return false;
  for (std::size_t index = 0; index < record.word_count; ++index) {
    if (*record.words[index].place != record.words[index].value) return false;
  }
  return true;
}

}  // namespace

WalkRecord* WalkMemo::at(std::uint32_t number) noexcept {
  return std::launder(reinterpret_cast<WalkRecord*>(bytes_ + std::size_t{number - 1} * sizeof(std::uint64_t)));
}

std::uint32_t& WalkMemo::bucket(const NativeContext& context) noexcept {
  return buckets_[mix(context.pc, context.sp) % kBuckets];
}

const WalkRecord* WalkMemo::find(const NativeContext& context, std::uintptr_t stop_low) noexcept {
  std::uint32_t& first = bucket(context);
  std::uint32_t* link = &first;
  for (int tries = 0; *link != 0 && tries < kLongestChain; ++tries) {
    WalkRecord* record = at(*link);
    if (still_holds(*record, context, stop_low)) {
      if (link != &first) {  // moves the latest hit to the front
        const std::uint32_t number = *link;
        *link = record->next;
        record->next = first;
        first = number;
      }
      return record;
    }
    link = &record->next;
  }
  return nullptr;
}

WalkRecord* WalkMemo::new_record() noexcept {
  if (capacity() - used_ < sizeof(WalkRecord)) return nullptr;
  return ::new (bytes_ + used_) WalkRecord;  // the walk sets every field
}

void WalkMemo::keep(WalkRecord* record) noexcept {
  if (!record->complete) return;
  std::uint32_t& first = bucket(record->context);
  record->next = first;
  first = static_cast<std::uint32_t>(used_ / sizeof(std::uint64_t)) + 1;
  used_ += record->bytes();
}

void WalkMemo::clear(bool grow) noexcept {
  std::memset(buckets_, 0, sizeof(buckets_));
  used_ = 0;
  if (grow && growth() > 0) ++doublings_;
}

}  // namespace tidemark::process
