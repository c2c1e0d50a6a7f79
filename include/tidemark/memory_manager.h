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
  std::uint64_t free_bytes = 0;   ///< memory that no process uses
  std::uint64_t total_bytes = 0;  ///< total memory of the device
};

/// Settings of the search for a batch size.
struct BatchSizeSettings {
  std::size_t start = 1;               ///< the first size tried
  std::optional<std::size_t> maximum;  ///< the largest useful size, such as the size of the data set
  std::size_t multiple_of = 1;         ///< sizes are multiples of this
  double margin = 0.05;                ///< the result is at most this share below the largest size that fits
  std::size_t max_probes = 8;          ///< maximum number of sizes tried
};

/// Result of the search for a batch size.
struct BatchSize {
  std::optional<std::size_t> batch_size;    ///< the largest size that was tried and fitted; nullopt if none fitted
  std::optional<std::size_t> does_not_fit;  ///< the smallest size that was tried and did not fit; nullopt if all fitted
  std::size_t probes = 0;                   ///< number of sizes tried
  std::optional<double> slope_bytes;        ///< increase of the sampled peaks per sample
  std::optional<double> intercept_bytes;    ///< sampled peak without any sample, extrapolated
  bool maximum_fits = false;                ///< The largest requested size fits.
  bool probes_used = false;                 ///< Ended early: a larger size may fit.
};

/// The memory of one device. Belongs to one thread.
class TIDEMARK_API MemoryManager {
 public:
  /// Manages the device with this CUDA ordinal in this process. Retains its primary context, as the CUDA runtime does.
  /// Throws Error if there is no driver or no such device.
  explicit MemoryManager(int device = 0);
  ~MemoryManager();
  MemoryManager(const MemoryManager&) = delete;             ///< It keeps a context.
  MemoryManager& operator=(const MemoryManager&) = delete;  ///< It keeps a context.

  /// Current memory. Throws Error if the driver does not report it.
  [[nodiscard]] MemoryState check_memory() const;

  /// The largest batch that fits. `fits` runs one whole training step with a batch of this size and returns whether the
  /// memory was enough; it releases what it allocated, including the caches of a caching allocator. Exceptions of
  /// `fits` are passed on.
  ///
  /// Meanwhile a thread samples the driver's free memory every millisecond. The sampled peaks only predict the next
  /// sizes to try; whether a size fits is decided by what `fits` returned. Allocations of other processes during the
  /// search are part of the peaks. Throws Error for invalid settings.
  [[nodiscard]] BatchSize auto_batch_size(const std::function<bool(std::size_t batch_size)>& fits,
                                          const BatchSizeSettings& settings = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace tidemark

#endif
