#include "loading/batch_pipeline.h"

#include <utility>

#include "loading/element_conversion.h"

namespace tidemark {
namespace {

/// The arrays where the host has them, converted: those that are not stay in place.
LoadedBatch on_host(std::size_t number, SourceBatch read) {
  const auto layout = lay_out(read.arrays);
  if (!layout) throw BatchPipeline::CopyFailed(layout.error());
  struct Kept {
    std::shared_ptr<const void> owner;
    std::vector<std::vector<std::byte>> converted;
  };
  auto kept = std::make_shared<Kept>();
  kept->owner = std::move(read.owner);
  LoadedBatch loaded{number, {}, {}, nullptr};
  for (std::size_t index = 0; index < read.arrays.size(); ++index) {
    const SourceArray& array = read.arrays[index];
    std::uint64_t address = array.address;
    const std::size_t bytes = layout->places[index].result_bytes;
    if (array.conversion) {
      std::vector<std::byte>& converted = kept->converted.emplace_back(bytes);
      convert(*array.conversion, {reinterpret_cast<const std::byte*>(array.address), array.bytes}, converted.data());
      address = reinterpret_cast<std::uint64_t>(converted.data());
    }
    loaded.arrays.push_back({address, bytes});
  }
  loaded.owner = std::move(kept);
  return loaded;
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
    pipeline->conversions_ = std::make_unique<DeviceConversions>(*pipeline->copies_);
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
  return on_host(number, *std::move(read));
}

LoadedBatch BatchPipeline::copied(std::size_t number, SourceBatch read) {
  const auto layout = lay_out(read.arrays);
  if (!layout) throw CopyFailed(layout.error());
  auto buffer = buffers_->take(layout->bytes, copies_->stream());
  if (!buffer) throw CopyFailed(buffer.error());
  LoadedBatch loaded{number, {}, *buffer, nullptr};
  for (const BatchLayout::Place& place : layout->places) {
    loaded.arrays.push_back({buffer->address + place.result, place.result_bytes});
  }
  const cuda::Driver& driver = copies_->driver();
  const cuda::CurrentContext current(driver, copies_->context());
  try {
    if (const auto begun = fill(read, *layout, loaded); !begun) throw CopyFailed(begun.error());
    if (options_.on_device) options_.on_device(loaded.arrays, copies_->stream());
  } catch (...) {
    driver.synchronize_stream(copies_->stream());  // what was begun may still read pinned arrays
    buffers_->give_back(*buffer, copies_->stream());
    throw;
  }
  driver.record_event(buffer->ready, copies_->stream());
  if (read.pinned) loaded.owner = std::move(read.owner);  // the device may still be reading
  return loaded;
}

Result<void> BatchPipeline::fill(const SourceBatch& read, const BatchLayout& layout, const LoadedBatch& loaded) {
  std::vector<HostArrayCopy> copies;
  const cuda::DevicePointer base = loaded.buffer.address;
  for (std::size_t index = 0; index < read.arrays.size(); ++index) {
    const SourceArray& array = read.arrays[index];
    copies.push_back({reinterpret_cast<const std::byte*>(array.address), base + layout.places[index].copy, array.bytes,
                      read.pinned});
    copied_bytes_.fetch_add(array.bytes, std::memory_order_relaxed);
  }
  if (auto begun = copies_->copy(copies); !begun) return begun;
  for (std::size_t index = 0; index < read.arrays.size(); ++index) {
    const auto& conversion = read.arrays[index].conversion;
    if (!conversion) continue;
    const auto begun = conversions_->begin(*conversion, copies[index].to, loaded.arrays[index].address,
                                           read.arrays[index].bytes / element_bytes(conversion->from));
    if (!begun) return begun.error();
  }
  return {};
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
