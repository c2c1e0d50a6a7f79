#include "loading/batch_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "loading/element_conversion.h"

namespace tidemark {

namespace {

/// The arrays in host memory, converted; unconverted ones stay in place.
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

constexpr std::size_t kAlignment = 256;  // as cuMemAlloc's

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr std::size_t kMaxReaders = 1024;

constexpr std::size_t kMaxBytes = std::size_t{1} << 48;  // of a batch: more memory than any device has

constexpr std::size_t kGranularity = 2ull << 20;  // the driver reserves memory in pages of this size

}  // namespace

Result<std::unique_ptr<BatchPipeline>> BatchPipeline::create(const cuda::Driver* driver, Source source,
                                                             PipelineOptions options) {
  if (!source) return Error{"a prefetching loader needs a source of batches"};
  if (options.ahead == 0 || options.readers == 0) return Error{"a prefetching loader needs a batch ahead and a thread"};
  if (options.readers > kMaxReaders) {
    return Error{fmt::format("a prefetching loader has at most {} threads that read", kMaxReaders)};
  }
  auto pipeline = std::unique_ptr<BatchPipeline>(new BatchPipeline(std::move(source), std::move(options)));
  const PipelineOptions& chosen = pipeline->options_;
  try {
    if (chosen.device) {
      auto copies = HostToDevice::create(*driver, *chosen.device);
      if (!copies) return copies.error();
      pipeline->copies_ = std::move(*copies);
      pipeline->conversions_ = std::make_unique<DeviceConversions>(*pipeline->copies_);
      pipeline->buffers_ = std::make_unique<DeviceBuffers>(*driver, pipeline->copies_->context());
    }
    pipeline->ahead_ = std::make_unique<ReadAhead<LoadedBatch>>(
        [own = pipeline.get()](std::size_t number) { return own->load(number); }, chosen.ahead, chosen.readers);
  } catch (const std::system_error& error) {
    return Error{fmt::format("a prefetching loader cannot start its threads: {}", error.code().message())};
  }
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
    driver.synchronize_stream(copies_->stream());  // started copies may still read pinned arrays
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

Result<BatchLayout> lay_out(std::span<const SourceArray> arrays) {
  BatchLayout layout;
  for (const SourceArray& array : arrays) {
    std::size_t bytes = array.bytes;
    if (bytes > kMaxBytes || layout.bytes > kMaxBytes) {
      return Error{fmt::format("array {}: a batch of this size is larger than any memory", layout.places.size())};
    }
    if (array.conversion) {
      const auto converted = converted_bytes(*array.conversion, array.bytes);
      if (!converted) return Error{fmt::format("array {}: {}", layout.places.size(), converted.error().message)};
      bytes = *converted;
    }
    layout.places.push_back({layout.bytes, bytes, layout.bytes});
    layout.bytes += aligned(bytes);
  }
  for (std::size_t index = 0; index < arrays.size(); ++index) {
    if (!arrays[index].conversion) continue;
    if (layout.bytes > kMaxBytes) return Error{"the arrays of a batch are larger than any memory"};
    layout.places[index].copy = layout.bytes;
    layout.bytes += aligned(arrays[index].bytes);
  }
  return layout;
}

DeviceBuffers::~DeviceBuffers() {
  const cuda::CurrentContext current(driver_, context_);
  for (const DeviceBuffer& buffer : idle_) free(buffer);
}

Result<DeviceBuffer> DeviceBuffers::take(std::size_t bytes, cuda::Stream stream) {
  const cuda::CurrentContext current(driver_, context_);
  DeviceBuffer taken;
  {
    const std::lock_guard lock(mutex_);
    auto fits = idle_.end();
    for (auto buffer = idle_.begin(); buffer != idle_.end(); ++buffer) {
      if (buffer->bytes >= bytes && (fits == idle_.end() || buffer->bytes < fits->bytes)) fits = buffer;
    }
    if (fits != idle_.end()) {
      taken = *fits;
      idle_.erase(fits);
    } else if (!idle_.empty()) {  // batches grow: a larger buffer takes the place of one that is too small
      free(idle_.back());
      idle_.pop_back();
    }
  }
  if (taken.address == 0) return allocate(bytes);
  if (const auto status = driver_.stream_wait_event(stream, taken.used, 0); status != cuda::kSuccess) {
    free(taken);
    return driver_.error("cuStreamWaitEvent", status);
  }
  return taken;
}

void DeviceBuffers::give_back(const DeviceBuffer& buffer, cuda::Stream stream) {
  const cuda::CurrentContext current(driver_, context_);
  if (driver_.record_event(buffer.used, stream) != cuda::kSuccess) {
    free(buffer);
    return;
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(buffer);
}

Result<DeviceBuffer> DeviceBuffers::allocate(std::size_t bytes) {
  DeviceBuffer buffer;
  buffer.bytes = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
  auto status = driver_.alloc(&buffer.address, buffer.bytes);
  if (status != cuda::kSuccess) {
    return driver_.error(fmt::format("{} bytes for a batch: cuMemAlloc", buffer.bytes).c_str(), status);
  }
  for (cuda::Event* event : {&buffer.used, &buffer.ready}) {
    status = driver_.create_event(event, cuda::kEventDisableTiming);
    if (status != cuda::kSuccess) {
      free(buffer);
      return driver_.error("cuEventCreate", status);
    }
  }
  return buffer;
}

void DeviceBuffers::free(const DeviceBuffer& buffer) const {
  if (buffer.used != nullptr) driver_.synchronize_event(buffer.used);
  driver_.free(buffer.address);
  if (buffer.used != nullptr) driver_.destroy_event(buffer.used);
  if (buffer.ready != nullptr) driver_.destroy_event(buffer.ready);
}

}  // namespace tidemark
