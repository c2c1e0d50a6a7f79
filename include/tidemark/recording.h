/// @file
/// Reading recordings and PyTorch memory snapshots, and analysing them.
///
///     tidemark::Recording recording("train.tide");
///     for (const tidemark::DeviceMemory& device : recording.devices()) {
///       std::cout << device.device << ": peak " << device.peak_allocated_bytes << " bytes\n";
///     }
///     std::cout << recording.analyze("leaks");
#ifndef TIDEMARK_RECORDING_H
#define TIDEMARK_RECORDING_H

#include <tidemark/error.h>
#include <tidemark/export.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// What the allocator of one device held in a recording. Sizes are bytes, times nanoseconds from the recording's start;
/// nullopt: unknown.
struct DeviceMemory {
  std::string device;                                ///< "cuda:0", "cpu"
  std::uint64_t allocation_count = 0;                ///< blocks that were allocated
  std::uint64_t free_count = 0;                      ///< blocks that were freed
  std::uint64_t total_allocated_bytes = 0;           ///< the sum of all allocations
  std::uint64_t peak_allocated_bytes = 0;            ///< the most that was allocated at one time
  std::optional<std::uint64_t> peak_at_ns;           ///< when that was first
  std::optional<std::uint64_t> peak_reserved_bytes;  ///< maximum of reserved memory; nullopt for the CPU
  std::optional<std::uint64_t> peak_reserved_at_ns;  ///< when that was first
  std::uint64_t end_allocated_bytes = 0;             ///< allocated at the end
  std::uint64_t end_block_count = 0;                 ///< recorded blocks that were alive then
  std::optional<std::uint64_t> end_reserved_bytes;   ///< reserved at the end
  std::uint64_t out_of_memory_count = 0;             ///< requests that failed
};

/// The recorded program.
struct RecordedProgram {
  std::string path;                 ///< of the recording's file
  std::string command_line;         ///< command line of the program; empty if unknown
  std::optional<std::int64_t> pid;  ///< nullopt if unknown
  std::uint64_t event_count = 0;    ///< number of recorded events
  std::uint64_t duration_ns = 0;    ///< duration of the recording
};

/// A file that was read. Safe to use from several threads.
class TIDEMARK_API Recording {
 public:
  /// Reads a .tide file or a PyTorch memory snapshot in time proportional to the size of the file. Throws Error, which
  /// names the file, if it cannot be read.
  explicit Recording(const std::string& path);
  ~Recording();
  Recording(Recording&& other) noexcept;             ///< `other` throws Error then.
  Recording& operator=(Recording&& other) noexcept;  ///< `other` throws Error then.

  /// The recorded program.
  [[nodiscard]] RecordedProgram program() const;
  /// Peaks and totals, by device.
  [[nodiscard]] std::vector<DeviceMemory> devices() const;

  /// Result of an analysis: the JSON that `tidemark NAME --format json FILE` prints, for example for "summary",
  /// "leaks", "fragmentation", "explain", "breakdown" or "timeline". Options are those of the command without their
  /// dashes: {{"device", "cuda:0"}}. Throws Error for an unknown analysis or option, and if the analysis fails.
  [[nodiscard]] std::string analyze(const std::string& name,
                                    const std::map<std::string, std::string>& options = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Names of all analyses, in the order in which `tidemark --help` lists them.
TIDEMARK_API std::vector<std::string> analyses();

}  // namespace v1
}  // namespace tidemark

#endif
