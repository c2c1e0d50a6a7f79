// Batches from a source to a device: read by threads, copied through pinned memory, handed out in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "loading/batch_layout.h"
#include "loading/device_buffers.h"
#include "loading/device_conversions.h"
#include "loading/host_to_device.h"
#include "loading/read_ahead.h"

namespace tidemark {

/// A batch as its source read it.
struct SourceBatch {
  std::vector<SourceArray> arrays;
  std::shared_ptr<const void> owner;  ///< keeps them
  bool pinned = false;
};

/// A batch where the program gets it.
struct LoadedBatch {
  std::size_t number = 0;
  std::vector<BatchBytes> arrays;
  DeviceBuffer buffer;                ///< of all arrays; without a device none
  std::shared_ptr<const void> owner;  ///< what still has to be kept
};

struct PipelineOptions {
  std::optional<HostToDeviceOptions> device;  ///< none: batches stay on the host
  std::size_t ahead = 2;
  std::size_t readers = 1;
  /// Called on a reader when the copies and conversions of a batch are on the stream.
  std::function<void(std::span<const BatchBytes> arrays, cuda::Stream stream)> on_device;
};

/// next(), stop() and give_back() belong to one thread.
class BatchPipeline {
 public:
  using Source = std::function<std::optional<SourceBatch>(std::size_t number)>;

  /// `driver` is needed where there is a device.
  [[nodiscard]] static Result<std::unique_ptr<BatchPipeline>> create(const cuda::Driver* driver, Source source,
                                                                     PipelineOptions options);
  ~BatchPipeline() { stop(); }
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  /// The next batch; what is put on `stream` from now on finds it copied. None after the last one. Throws what the
  /// source threw, and CopyFailed.
  [[nodiscard]] std::optional<LoadedBatch> next(cuda::Stream stream);
  /// `stream`: what was put on it uses the batch.
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
