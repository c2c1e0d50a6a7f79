// What the stand-in driver says it gave out, and what a recording says of it, in one form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tidemark::testing {

/// What one call of the driver changed.
struct Change {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::string account;     ///< "cuda-driver:0"
  std::int64_t bytes = 0;  ///< below 0 where they were given back
  std::string owner;       ///< where bytes were taken: the library that called the driver

  bool operator==(const Change&) const = default;
};
void PrintTo(const Change& change, std::ostream* out);

/// One recording, of one process.
struct DriverRecording {
  std::int64_t pid = 0;
  std::vector<Change> changes;                   ///< of the driver's devices, in the order of time
  std::map<std::string, std::uint64_t> missing;  ///< count by kind
  std::vector<std::string> reasons;              ///< the texts of what is missing
  std::size_t failures = 0;                      ///< out of memory
  std::size_t unsized_frees = 0;                 ///< frees of blocks that were not seen
  bool in_time_order = true;
};

/// The lines of FAKES_CUDA_LOG. Where libcudart called, the owner is the library that calls that one in the scenes.
std::vector<Change> said_changes(const std::string& log);

/// `tidemark dump` of a recording.
DriverRecording driver_recording(const std::string& path);

/// Bytes of each account, and the most there were of it at any time.
struct Level {
  std::int64_t now = 0;
  std::int64_t peak = 0;

  bool operator==(const Level&) const = default;
};
std::map<std::string, Level> levels(const std::vector<Change>& changes);

}  // namespace tidemark::testing
