/// @file
/// Memory of a CUDA device: what there is, and the largest batch that fits it. Without PyTorch.
///
///     tidemark::MemoryManager manager;
///     const tidemark::BatchSize found = manager.auto_batch_size([&](std::size_t size) {
///       try {
///         train_step(size);
///       } catch (const c10::OutOfMemoryError&) {
///         c10::cuda::CUDACachingAllocator::emptyCache();
///         return false;
///       }
///       c10::cuda::CUDACachingAllocator::emptyCache();
///       return true;
///     });
#ifndef TIDEMARK_MEMORY_MANAGER_H
#define TIDEMARK_MEMORY_MANAGER_H

#include <tidemark/error.h>
#include <tidemark/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// Memory of a device, in bytes, as its driver sees it: of all processes.
struct MemoryState {
  std::uint64_t free_bytes = 0;   ///< not allocated by anybody
  std::uint64_t total_bytes = 0;  ///< of the device
};

/// What a search for a batch size may do.
struct BatchSizeSettings {
  std::size_t start = 1;               ///< the first size tried
  std::optional<std::size_t> maximum;  ///< no larger size is of use, such as that of the data set
  std::size_t multiple_of = 1;         ///< sizes are multiples of it
  double margin = 0.05;                ///< how far below the largest size that fits the result may be: a share
  std::size_t max_probes = 8;          ///< at most so many sizes are tried
};

/// What a search has found.
struct BatchSize {
  std::optional<std::size_t> batch_size;    ///< the largest size that was tried and fitted; none did
  std::optional<std::size_t> does_not_fit;  ///< the smallest size that was tried and did not
  std::size_t probes = 0;                   ///< so many sizes were tried
  std::optional<double> slope_bytes;        ///< of the sampled peaks, for each sample
  std::optional<double> intercept_bytes;    ///< of the sampled peaks, without a sample
  bool maximum_fits = false;                ///< The largest size asked for fits.
  bool probes_used = false;                 ///< Ended early: a larger size may fit.
};

/// The memory of one device. Belongs to one thread.
class TIDEMARK_API MemoryManager {
 public:
  /// Of a device, as CUDA numbers them in this process. Keeps its primary context, as the CUDA runtime does. Throws
  /// Error where there is no driver, or no such device.
  explicit MemoryManager(int device = 0);
  ~MemoryManager();
  MemoryManager(const MemoryManager&) = delete;             ///< It keeps a context.
  MemoryManager& operator=(const MemoryManager&) = delete;  ///< It keeps a context.

  /// Now. Throws Error where the driver does not say it.
  [[nodiscard]] MemoryState check_memory() const;

  /// The largest batch that fits. `fits` runs one whole training step with a batch of this size and says whether it
  /// had the memory; it gives back what it took, a caching allocator's caches too. What it throws is thrown here.
  ///
  /// While it runs, a thread asks the driver every millisecond for the free memory: peaks, from which the next sizes
  /// follow. They are forecasts only: sizes count as fitting by what `fits` returned. Other processes that allocate
  /// meanwhile are in the peaks. Throws Error for settings that are none.
  [[nodiscard]] BatchSize auto_batch_size(const std::function<bool(std::size_t batch_size)>& fits,
                                          const BatchSizeSettings& settings = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace tidemark

#endif
