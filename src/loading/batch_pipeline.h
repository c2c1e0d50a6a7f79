// Batches from a source to a device: read by threads, copied through pinned memory, handed out in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"
#include "loading/device_conversions.h"
#include "loading/element_conversion.h"
#include "loading/host_to_device.h"
#include "loading/read_ahead.h"

namespace tidemark {

struct DeviceBuffer {
  cuda::DevicePointer address = 0;
  std::size_t bytes = 0;
  cuda::Event used = nullptr;   ///< recorded after the last use
  cuda::Event ready = nullptr;  ///< for the next use: recorded after it was filled
};

/// Any thread. `context` is the device's, and outlives it.
class DeviceBuffers {
 public:
  DeviceBuffers(const cuda::Driver& driver, cuda::Context context) : driver_(driver), context_(context) {}
  /// Frees the buffers that were given back. The others belong to their users.
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  /// A buffer of at least `bytes`. `stream` waits for its previous user.
  [[nodiscard]] Result<DeviceBuffer> take(std::size_t bytes, cuda::Stream stream);
  /// `stream`: its queued work uses the buffer.
  void give_back(const DeviceBuffer& buffer, cuda::Stream stream);

 private:
  [[nodiscard]] Result<DeviceBuffer> allocate(std::size_t bytes);
  void free(const DeviceBuffer& buffer) const;

  const cuda::Driver& driver_;
  cuda::Context context_;
  std::mutex mutex_;
  std::vector<DeviceBuffer> idle_;
};

/// An array of a batch, on the host or on a device.
struct BatchBytes {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

/// An array as its source read it.
struct SourceArray {
  std::uint64_t address = 0;                         ///< in host memory
  std::size_t bytes = 0;                             ///< before it is converted
  std::optional<ElementConversion> conversion = {};  ///< on its way
};

/// Offsets of the arrays: the program's arrays come first, then unconverted copies.
struct BatchLayout {
  struct Place {
    std::size_t result = 0;        ///< of the program's array
    std::size_t result_bytes = 0;  ///< converted
    std::size_t copy = 0;          ///< target of the copy: `result` without a conversion
  };
  std::vector<Place> places;
  std::size_t bytes = 0;  ///< of all
};

/// The error names the array with an invalid conversion.
[[nodiscard]] Result<BatchLayout> lay_out(std::span<const SourceArray> arrays);

/// A batch as its source read it.
struct SourceBatch {
  std::vector<SourceArray> arrays;
  std::shared_ptr<const void> owner;  ///< keeps them
  bool pinned = false;
};

/// A batch for the program.
struct LoadedBatch {
  std::size_t number = 0;
  std::vector<BatchBytes> arrays;
  DeviceBuffer buffer;                ///< of all arrays; empty without a device
  std::shared_ptr<const void> owner;  ///< keeps memory alive that is still in use
};

struct PipelineOptions {
  std::optional<HostToDeviceOptions> device;  ///< nullopt: batches stay on the host
  std::size_t ahead = 2;
  std::size_t readers = 1;
  /// Called on a reader when the copies and conversions of a batch are on the stream.
  std::function<void(std::span<const BatchBytes> arrays, cuda::Stream stream)> on_device;
};

/// next(), stop() and give_back() belong to one thread.
class BatchPipeline {
 public:
  using Source = std::function<std::optional<SourceBatch>(std::size_t number)>;

  /// `driver` is needed for a device.
  [[nodiscard]] static Result<std::unique_ptr<BatchPipeline>> create(const cuda::Driver* driver, Source source,
                                                                     PipelineOptions options);
  ~BatchPipeline() { stop(); }
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  /// The next batch; work queued on `stream` from now on finds it copied. nullopt after the last one. Throws
  /// CopyFailed, and exceptions of the source.
  [[nodiscard]] std::optional<LoadedBatch> next(cuda::Stream stream);
  /// `stream`: its queued work uses the batch.
  void give_back(const LoadedBatch& batch, cuda::Stream stream);
  void stop();

  [[nodiscard]] ReadAheadTimes times() const { return ahead_->times(); }
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t pinned_bytes() const { return copies_ ? copies_->pinned_bytes() : 0; }

  struct CopyFailed : std::exception {
    explicit CopyFailed(Error what_failed) : error(std::move(what_failed)) {}
    Error error;
  };

 private:
  BatchPipeline(Source source, PipelineOptions options) : source_(std::move(source)), options_(std::move(options)) {}
  [[nodiscard]] std::optional<LoadedBatch> load(std::size_t number);
  [[nodiscard]] LoadedBatch copied(std::size_t number, SourceBatch read);
  /// Begins the copies and conversions into loaded.buffer.
  [[nodiscard]] Result<void> fill(const SourceBatch& read, const BatchLayout& layout, const LoadedBatch& loaded);

  Source source_;
  PipelineOptions options_;
  HostToDevicePointer copies_;
  std::unique_ptr<DeviceConversions> conversions_;
  std::unique_ptr<DeviceBuffers> buffers_;
  std::atomic<std::uint64_t> copied_bytes_ = 0;
  std::unique_ptr<ReadAhead<LoadedBatch>> ahead_;
};

}  // namespace tidemark
