#include "runtime/prefetch/batch_pipeline.h"

#include <utility>

namespace tidemark {
namespace {

constexpr std::size_t kAlignment = 256;  // as cuMemAlloc's

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Result<std::unique_ptr<BatchPipeline>> BatchPipeline::create(const cuda::Driver* driver, Source source,
                                                             PipelineOptions options) {
  if (!source) return Error{"a prefetching loader needs a source of batches"};
  if (options.ahead == 0 || options.readers == 0) return Error{"a prefetching loader needs a batch ahead and a thread"};
  auto pipeline = std::unique_ptr<BatchPipeline>(new BatchPipeline(std::move(source), std::move(options)));
  const PipelineOptions& chosen = pipeline->options_;
  if (chosen.device) {
    auto copies = HostToDevice::create(*driver, *chosen.device);
    if (!copies) return copies.error();
    pipeline->copies_ = std::move(*copies);
    pipeline->buffers_ = std::make_unique<DeviceBuffers>(*driver, pipeline->copies_->context());
  }
  pipeline->ahead_ = std::make_unique<ReadAhead<LoadedBatch>>(
      [own = pipeline.get()](std::size_t number) { return own->load(number); }, chosen.ahead, chosen.readers);
  return pipeline;
}

std::optional<LoadedBatch> BatchPipeline::load(std::size_t number) {
  std::optional<SourceBatch> read = source_(number);
  if (!read) return std::nullopt;
  if (copies_) return copied(number, *std::move(read));
  return LoadedBatch{number, std::move(read->arrays), {}, std::move(read->owner)};
}

LoadedBatch BatchPipeline::copied(std::size_t number, SourceBatch read) {
  std::size_t total = 0;
  for (const BatchBytes& array : read.arrays) total += aligned(array.bytes);
  auto buffer = buffers_->take(total, copies_->stream());
  if (!buffer) throw CopyFailed(buffer.error());
  LoadedBatch loaded{number, {}, *buffer, nullptr};
  std::vector<HostArrayCopy> arrays;
  cuda::DevicePointer to = buffer->address;
  for (const BatchBytes& array : read.arrays) {
    arrays.push_back({reinterpret_cast<const std::byte*>(array.address), to, array.bytes, read.pinned});
    loaded.arrays.push_back({to, array.bytes});
    to += aligned(array.bytes);
    copied_bytes_.fetch_add(array.bytes, std::memory_order_relaxed);
  }
  if (const auto begun = copies_->copy(arrays); !begun) {
    buffers_->give_back(*buffer, copies_->stream());
    throw CopyFailed(begun.error());
  }
  const cuda::Driver& driver = copies_->driver();
  const cuda::CurrentContext current(driver, copies_->context());
  if (options_.on_device) options_.on_device(loaded.arrays, copies_->stream());
  driver.record_event(buffer->ready, copies_->stream());
  if (read.pinned) loaded.owner = std::move(read.owner);  // the device may still be reading
  return loaded;
}

std::optional<LoadedBatch> BatchPipeline::next(cuda::Stream stream) {
  std::optional<LoadedBatch> batch = ahead_->next();
  if (batch && batch->buffer.address != 0) {
    const cuda::Driver& driver = copies_->driver();
    const cuda::CurrentContext current(driver, copies_->context());
    driver.stream_wait_event(stream, batch->buffer.ready, 0);
  }
  return batch;
}

void BatchPipeline::give_back(const LoadedBatch& batch, cuda::Stream stream) {
  if (batch.buffer.address == 0) return;
  if (batch.owner) {
    const cuda::CurrentContext current(copies_->driver(), copies_->context());
    copies_->driver().synchronize_event(batch.buffer.ready);  // done long ago, unless the batch was not used
  }
  buffers_->give_back(batch.buffer, stream);
}

void BatchPipeline::stop() {
  if (!ahead_) return;
  for (const LoadedBatch& batch : ahead_->stop()) give_back(batch, copies_ ? copies_->stream() : nullptr);
}

}  // namespace tidemark
