/// @file
/// Batches that are read, and copied to a device, before the program asks for them.
///
///     tidemark::PrefetchLoader loader([&](std::size_t number) -> std::optional<tidemark::HostBatch> {
///       if (number == data.batches()) return std::nullopt;
///       auto images = data.read(number);  // std::shared_ptr<std::vector<std::uint8_t>>
///       const tidemark::Conversion to_half{tidemark::ElementType::uint8, tidemark::ElementType::float16, 1.0f / 255};
///       return tidemark::HostBatch{{{images->data(), images->size(), to_half}}, images};
///     });
///     while (auto batch = loader.next(stream)) {
///       train<<<grid, block, 0, stream>>>(static_cast<const __half*>((*batch)[0].data));
///     }
#ifndef TIDEMARK_PREFETCH_LOADER_H
#define TIDEMARK_PREFETCH_LOADER_H

#include <tidemark/error.h>
#include <tidemark/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// Element types of arrays, under PyTorch's names.
enum class ElementType : std::uint8_t {
  uint8 = 0,     ///< a byte
  float32 = 1,   ///< 4 bytes
  float16 = 2,   ///< 2 bytes: IEEE 754's half
  bfloat16 = 3,  ///< 2 bytes: the upper half of a float32
};

/// A conversion on the device after the copy, so that fewer bytes are copied: x becomes x * scale + offset, computed in
/// float32 with one rounding, and then rounded to the nearest number of the new type.
struct Conversion {
  ElementType from = ElementType::uint8;  ///< or float32
  ElementType to = ElementType::float32;  ///< or float16, bfloat16
  float scale = 1;                        ///< 1: the elements as they are
  float offset = 0;                       ///< added to each element
};

/// An array in host memory.
struct HostArray {
  const void* data = nullptr;  ///< its first byte
  std::size_t bytes = 0;       ///< its size
  /// Conversion of each element during the copy. The device then has memory for the array in both types.
  std::optional<Conversion> conversion = {};
};

/// A batch as it was read.
struct HostBatch {
  std::vector<HostArray> arrays;      ///< in the order in which the program expects them
  std::shared_ptr<const void> owner;  ///< keeps the arrays; released when they are not needed any more
  bool pinned = false;                ///< The arrays are in pinned memory, from which the device reads directly.
};

/// An array of a batch that was handed out.
struct BatchArray {
  void* data = nullptr;   ///< on the device; in host memory if the loader has no device
  std::size_t bytes = 0;  ///< its size, converted
};

/// A batch returned by next(). When it is destroyed, its device memory becomes available for a later batch, after the
/// work that the program queued on the stream of next() until then. Movable; belongs to one thread; must not outlive
/// its loader.
class TIDEMARK_API DeviceBatch {
 public:
  DeviceBatch(DeviceBatch&& other) noexcept;             ///< `other` is empty then.
  DeviceBatch& operator=(DeviceBatch&& other) noexcept;  ///< Gives its own batch back first.
  ~DeviceBatch();

  /// How many arrays.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Array `index`, below size().
  [[nodiscard]] BatchArray operator[](std::size_t index) const noexcept;
  /// Number of the batch.
  [[nodiscard]] std::size_t number() const noexcept;

 private:
  friend class PrefetchLoader;
  struct Parts;
  explicit DeviceBatch(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

/// Reads batch `number`, counted from 0; nullopt: the data ended before it. Called on the loader's threads,
/// concurrently if there are several; next() rethrows its exceptions in the place of the batch.
using BatchSource = std::function<std::optional<HostBatch>(std::size_t number)>;

/// How batches are read and copied.
struct PrefetchSettings {
  int device = 0;                   ///< as CUDA numbers them in this process; -1: batches stay in host memory
  std::size_t batches_ahead = 2;    ///< batches read and copied in advance; each takes device memory
  std::size_t reading_threads = 1;  ///< number of threads that call the source
  /// Number of threads that fill the pinned memory; 0: one for four processors that the process may use, at most 4.
  std::size_t copying_threads = 0;
  std::size_t pinned_bytes = 32u << 20;  ///< pinned host memory of the loader, for arrays that are not pinned
  /// Called after the copies and conversions of a batch have been put on the loader's stream (a CUstream): work on the
  /// batch that belongs there, in kernels of the program. On a thread of the loader, with the device's primary context.
  std::function<void(const std::vector<BatchArray>& arrays, void* stream)> on_device;
};

/// Statistics of a loader. Times are of the host's clock, in nanoseconds.
struct PrefetchStatistics {
  std::size_t batches = 0;         ///< handed out
  std::int64_t waited_ns = 0;      ///< next() waited for a batch
  std::int64_t reading_ns = 0;     ///< the threads read batches, and began to copy them
  std::int64_t held_up_ns = 0;     ///< the threads waited because enough batches were ready
  std::uint64_t copied_bytes = 0;  ///< bytes copied to the device
  std::size_t pinned_bytes = 0;    ///< pinned host memory of the loader
};

/// A loader. next() and stop() belong to one thread.
class TIDEMARK_API PrefetchLoader {
 public:
  /// Starts reading. Throws Error if the device, its stream or the pinned memory is unavailable.
  explicit PrefetchLoader(BatchSource source, PrefetchSettings settings = {});
  /// Waits for batches that are being read. Batches that were handed out must have been destroyed.
  ~PrefetchLoader();
  PrefetchLoader(const PrefetchLoader&) = delete;             ///< It has threads.
  PrefetchLoader& operator=(const PrefetchLoader&) = delete;  ///< It has threads.

  /// The next batch, in order; nullopt after the last one. Work that the program queues on `stream` (a CUstream or
  /// cudaStream_t of the device; null: the default stream) from now on waits for the copies; the host does not.
  /// Rethrows exceptions of the source, and throws Error if copies failed or a conversion is impossible; then there are
  /// no more batches.
  [[nodiscard]] std::optional<DeviceBatch> next(void* stream = nullptr);
  /// Stops the loader and drops batches read in advance. There are no more batches.
  void stop();
  /// So far.
  [[nodiscard]] PrefetchStatistics statistics() const;

 private:
  friend class DeviceBatch;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace tidemark

#endif
