// Which bytes of device memory have values: those that the host copied there or set, and that collectives brought. All
// others were computed on a real GPU, and are zeros here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tidemark::phantom {

/// Thread-safe. Memory without a known value contains zeros; so it must be written through this class only.
class KnownBytes {
 public:
  /// The bytes at `to`, which the caller has just written, are known.
  void add(void* to, std::size_t bytes);
  /// Sets what is known of these bytes to zero: they are a new block's, or were computed.
  void forget(void* start, std::size_t bytes);
  /// Copies what is known, within device memory; the rest of `to` is unknown then. The two may overlap.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Whether all of these bytes are known.
  [[nodiscard]] bool knows(const void* start, std::size_t bytes) const;
  /// How often this thread has made bytes of device memory known.
  [[nodiscard]] static std::uint64_t additions_of_thread();
  /// How many bytes are known.
  [[nodiscard]] std::size_t total() const { return total_.load(std::memory_order_relaxed); }

 private:
  using Ranges = std::map<char*, char*>;  // from start to end; they neither overlap nor touch

  void add_locked(char* start, char* end);
  void remove_locked(char* start, char* end);  ///< their bytes stay as they are
  [[nodiscard]] Ranges ranges_in(char* start, char* end) const;
  [[nodiscard]] Ranges::const_iterator first_behind(const char* start) const;

  mutable std::mutex mutex_;
  Ranges ranges_;
  std::atomic<std::size_t> total_ = 0;
};

/// Those of this process.
[[nodiscard]] KnownBytes& known_bytes();

}  // namespace tidemark::phantom
