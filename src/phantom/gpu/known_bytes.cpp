#include "phantom/gpu/known_bytes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tidemark::phantom {

namespace {

thread_local std::uint64_t additions = 0;

}  // namespace

// The first range that ends behind `start`.
KnownBytes::Ranges::const_iterator KnownBytes::first_behind(const char* start) const {
  auto range = ranges_.upper_bound(const_cast<char*>(start));
  if (range != ranges_.begin() && std::prev(range)->second > start) --range;
  return range;
}

KnownBytes::Ranges KnownBytes::ranges_in(char* start, char* end) const {
  Ranges found;
  for (auto range = first_behind(start); range != ranges_.end() && range->first < end; ++range) {
    found.emplace(std::max(range->first, start), std::min(range->second, end));
  }
  return found;
}

void KnownBytes::add_locked(char* start, char* end) {
  if (start == end) return;
  ++additions;
  auto range = first_behind(start);
  if (range != ranges_.begin() && std::prev(range)->second == start) --range;
  while (range != ranges_.end() && range->first <= end) {
    start = std::min(start, range->first);
    end = std::max(end, range->second);
    total_ -= static_cast<std::size_t>(range->second - range->first);
    range = ranges_.erase(range);
  }
  ranges_.emplace(start, end);
  total_ += static_cast<std::size_t>(end - start);
}

void KnownBytes::remove_locked(char* start, char* end) {
  auto range = first_behind(start);
  while (range != ranges_.end() && range->first < end) {
    const auto [first, last] = *range;
    range = ranges_.erase(range);
    if (first < start) ranges_.emplace(first, start);
    if (last > end) ranges_.emplace(end, last);
    total_ -= static_cast<std::size_t>(std::min(last, end) - std::max(first, start));
  }
}

void KnownBytes::add(void* to, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  add_locked(static_cast<char*>(to), static_cast<char*>(to) + bytes);
}

void KnownBytes::forget(void* start, std::size_t bytes) {
  if (total() == 0) return;
  const std::lock_guard lock(mutex_);
  auto* const first = static_cast<char*>(start);
  for (const auto& [from, to] : ranges_in(first, first + bytes))
    std::memset(from, 0, static_cast<std::size_t>(to - from));
  remove_locked(first, first + bytes);
}

void KnownBytes::copy(void* to, const void* from, std::size_t bytes) {
  if (to == from || total() == 0) return;
  const std::lock_guard lock(mutex_);
  auto* const source = static_cast<char*>(const_cast<void*>(from));
  auto* const target = static_cast<char*>(to);
  const Ranges known = ranges_in(source, source + bytes);
  std::memmove(target, source, bytes);  // zeros where nothing is known
  remove_locked(target, target + bytes);
  for (const auto& [first, last] : known) add_locked(target + (first - source), target + (last - source));
}

std::uint64_t KnownBytes::additions_of_thread() {
  return additions;
}

bool KnownBytes::knows(const void* start, std::size_t bytes) const {
  if (total() == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto* const first = static_cast<const char*>(start);
  const auto range = first_behind(first);
  return range != ranges_.end() && range->first <= first && range->second >= first + bytes;
}

KnownBytes& known_bytes() {
  static auto* const kBytes = new KnownBytes;  // never destroyed: destructors of the program may still copy
  return *kBytes;
}

}  // namespace tidemark::phantom
