#include <tidemark/prefetch_loader.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "cpp_api/results.h"
#include "loading/batch_pipeline.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
namespace {

std::vector<BatchArray> arrays_of(std::span<const BatchBytes> arrays) {
  std::vector<BatchArray> all;
  for (const BatchBytes& array : arrays) all.push_back({reinterpret_cast<void*>(array.address), array.bytes});
  return all;
}

// Values that are not a type of the interface become invalid here too: an error follows.
std::optional<ElementConversion> conversion_of(const std::optional<Conversion>& asked) {
  if (!asked) return std::nullopt;
  return ElementConversion{static_cast<tidemark::ElementType>(asked->from),
                           static_cast<tidemark::ElementType>(asked->to), asked->scale, asked->offset};
}

std::optional<SourceBatch> source_batch(std::optional<HostBatch> read) {
  if (!read) return std::nullopt;
  SourceBatch batch{{}, std::move(read->owner), read->pinned};
  for (const HostArray& array : read->arrays) {
    batch.arrays.push_back({reinterpret_cast<std::uint64_t>(array.data), array.bytes, conversion_of(array.conversion)});
  }
  return batch;
}

PipelineOptions pipeline_options(PrefetchSettings settings) {
  PipelineOptions options;
  options.ahead = settings.batches_ahead;
  options.readers = settings.reading_threads;
  if (settings.device >= 0) {
    HostToDeviceOptions device;
    device.device = settings.device;
    device.threads = settings.copying_threads;
    device.chunk_bytes = std::min(device.chunk_bytes, settings.pinned_bytes / 2);
    device.chunks = device.chunk_bytes == 0 ? 0 : settings.pinned_bytes / device.chunk_bytes;
    options.device = device;
  }
  if (settings.on_device) {
    options.on_device = [call = std::move(settings.on_device)](std::span<const BatchBytes> arrays,
                                                               cuda::Stream stream) {
      call(arrays_of(arrays), stream);
    };
  }
  return options;
}

}  // namespace

struct DeviceBatch::Parts {
  Parts(BatchPipeline* from, LoadedBatch loaded, cuda::Stream used_on)
      : pipeline(from), batch(std::move(loaded)), stream(used_on) {}
  ~Parts() { pipeline->give_back(batch, stream); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  BatchPipeline* pipeline;
  LoadedBatch batch;
  cuda::Stream stream;
};

struct PrefetchLoader::Parts {
  std::unique_ptr<BatchPipeline> pipeline;
  pid_t owner = ::getpid();
};

DeviceBatch::DeviceBatch(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
DeviceBatch::DeviceBatch(DeviceBatch&& other) noexcept = default;
DeviceBatch& DeviceBatch::operator=(DeviceBatch&& other) noexcept = default;
DeviceBatch::~DeviceBatch() = default;

std::size_t DeviceBatch::size() const noexcept {
  return parts_ ? parts_->batch.arrays.size() : 0;
}

BatchArray DeviceBatch::operator[](std::size_t index) const noexcept {
  if (index >= size()) return {};
  const BatchBytes& array = parts_->batch.arrays[index];
  return {reinterpret_cast<void*>(array.address), array.bytes};
}

std::size_t DeviceBatch::number() const noexcept {
  return parts_ ? parts_->batch.number : 0;
}

PrefetchLoader::PrefetchLoader(BatchSource source, PrefetchSettings settings) : parts_(std::make_unique<Parts>()) {
  const cuda::Driver* driver = nullptr;
  if (settings.device >= 0) driver = value_or_throw(cuda::driver());
  BatchPipeline::Source read;
  if (source) read = [source = std::move(source)](std::size_t number) { return source_batch(source(number)); };
  parts_->pipeline =
      value_or_throw(BatchPipeline::create(driver, std::move(read), pipeline_options(std::move(settings))));
}

// A forked child has neither the threads nor the device, so nothing is destroyed there.
PrefetchLoader::~PrefetchLoader() {
  if (parts_->owner != ::getpid()) static_cast<void>(parts_.release());
}

std::optional<DeviceBatch> PrefetchLoader::next(void* stream) {
  if (parts_->owner != ::getpid()) throw v1::Error("a batch was asked for in a forked process: make the loader there");
  try {
    std::optional<LoadedBatch> batch = parts_->pipeline->next(stream);
    if (!batch) return std::nullopt;
    return DeviceBatch(std::make_unique<DeviceBatch::Parts>(parts_->pipeline.get(), *std::move(batch), stream));
  } catch (const BatchPipeline::CopyFailed& failed) {
    throw v1::Error(failed.error.message);
  }
}

void PrefetchLoader::stop() {
  parts_->pipeline->stop();
}

PrefetchStatistics PrefetchLoader::statistics() const {
  const ReadAheadTimes times = parts_->pipeline->times();
  PrefetchStatistics statistics;
  statistics.batches = times.items;
  statistics.waited_ns = times.waited_ns;
  statistics.reading_ns = times.making_ns;
  statistics.held_up_ns = times.held_up_ns;
  statistics.copied_bytes = parts_->pipeline->copied_bytes();
  statistics.pinned_bytes = parts_->pipeline->pinned_bytes();
  return statistics;
}

}  // namespace v1
}  // namespace tidemark
