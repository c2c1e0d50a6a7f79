// The stand-in driver's account, and a recording, in one form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tidemark::testing {

/// The change of one call of the driver.
struct Change {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::string account;     ///< "cuda-driver:0"
  std::int64_t bytes = 0;  ///< negative if they were released
  std::string owner;       ///< for taken bytes: the library that called the driver

  bool operator==(const Change&) const = default;
};
void PrintTo(const Change& change, std::ostream* out);

/// One recording, of one process.
struct DriverRecording {
  std::int64_t pid = 0;
  std::vector<Change> changes;                   ///< on the driver's devices, in the order of time
  std::map<std::string, std::uint64_t> missing;  ///< count by kind
  std::vector<std::string> reasons;              ///< the texts of the losses
  std::size_t failures = 0;                      ///< out of memory
  std::size_t unsized_frees = 0;                 ///< frees of unrecorded blocks
  bool in_time_order = true;
};

/// The lines of FAKES_CUDA_LOG. If libcudart called, the owner is the library that calls it in the scenes.
std::vector<Change> said_changes(const std::string& log);

/// `tidemark dump` of a recording.
DriverRecording driver_recording(const std::string& path);

/// Bytes of each account, and their peak.
struct Level {
  std::int64_t now = 0;
  std::int64_t peak = 0;

  bool operator==(const Level&) const = default;
};
std::map<std::string, Level> levels(const std::vector<Change>& changes);

}  // namespace tidemark::testing
