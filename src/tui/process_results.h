// Results for a process with a recording in progress: holders of its memory, and findings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/stack_names.h"

namespace tidemark::tui {

/// Grouping of memory.
enum class HeldBy : unsigned char { stack = 0, module = 1, category = 2 };
inline constexpr std::size_t kHeldBy = 3;

struct Holder {
  std::string name;                 ///< printable; of a stack as long as a wide terminal shows it
  std::optional<NamedStack> stack;  ///< for shortening it to fewer columns
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::int64_t change_bytes = 0;  ///< over the window
};

struct DeviceHolders {
  std::string device;  ///< "cuda:0"
  std::uint64_t allocated_bytes = 0;
  std::uint64_t peak_bytes = 0;
  /// Most bytes first; nullopt if the recording does not contain it.
  std::array<std::optional<std::vector<Holder>>, kHeldBy> by;
};

enum class FindingKind : unsigned char { note, warning, problem };

struct Finding {
  FindingKind kind = FindingKind::note;
  std::string title;                 ///< printable, one line
  std::vector<std::string> details;  ///< printable lines
};

struct ProcessResults {
  std::int64_t pid = -1;
  std::string name;      ///< "python train.py"; printable
  std::string problem;   ///< why it cannot be read, as a sentence; else empty
  bool reading = false;  ///< earlier data is still being read: there are no results yet
  std::vector<DeviceHolders> devices;
  std::vector<Finding> findings;
};

}  // namespace tidemark::tui
