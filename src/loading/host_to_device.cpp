#include "loading/host_to_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/thread_without_signals.h"
#include "base/worker.h"

namespace tidemark {

std::size_t filling_threads(std::size_t processors) {
  return std::clamp<std::size_t>(processors / 4, 1, 4);
}

void DeleteUnlessForked::operator()(HostToDevice* copier) const {
  if (!copier->was_forked()) delete copier;
}

bool HostToDevice::was_forked() const {
  return owner_ != ::getpid();
}

Result<HostToDevicePointer> HostToDevice::create(const cuda::Driver& driver, const HostToDeviceOptions& options) {
  if (options.chunk_bytes == 0 || options.chunks < 2) {
    return Error{"copies to a device need two chunks of pinned memory, which hold something"};
  }
  auto copier = HostToDevicePointer(new HostToDevice(driver, options));
  if (options.threads == 0) copier->options_.threads = filling_threads(usable_processors());
  if (auto error = copier->prepare()) return *std::move(error);
  return copier;
}

std::optional<Error> HostToDevice::prepare() {
  owner_ = ::getpid();
  auto context = cuda::PrimaryContext::retain(driver_, options_.device);
  if (!context) return context.error();
  context_.emplace(std::move(*context));
  const cuda::CurrentContext current(driver_, context_->get());
  if (const auto status = driver_.create_stream(&stream_, cuda::kStreamNonBlocking); status != cuda::kSuccess) {
    return driver_.error("cuStreamCreate", status);
  }
  for (std::size_t number = 0; number < options_.chunks; ++number) {
    Chunk& chunk = *chunks_.emplace_back(std::make_unique<Chunk>());
    void* memory = nullptr;
    auto status = driver_.host_alloc(&memory, options_.chunk_bytes, cuda::kHostAllocPortable);
    if (status != cuda::kSuccess) {
      return driver_.error(fmt::format("{} bytes of pinned memory: cuMemHostAlloc", options_.chunk_bytes).c_str(),
                           status);
    }
    chunk.memory = static_cast<std::byte*>(memory);
    status = driver_.create_event(&chunk.copied, cuda::kEventBlockingSync | cuda::kEventDisableTiming);
    if (status != cuda::kSuccess) return driver_.error("cuEventCreate", status);
  }
  for (std::size_t number = 1; number < options_.threads; ++number) {
    threads_.push_back(thread_without_signals([this] { work(); }));
  }
  return std::nullopt;
}

HostToDevice::~HostToDevice() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (!context_) return;
  const cuda::CurrentContext current(driver_, context_->get());
  if (stream_ != nullptr) driver_.synchronize_stream(stream_);
  for (const auto& chunk : chunks_) {
    if (chunk->copied != nullptr) driver_.destroy_event(chunk->copied);
    if (chunk->memory != nullptr) driver_.host_free(chunk->memory);
  }
  if (stream_ != nullptr) driver_.destroy_stream(stream_);
}

Result<void> HostToDevice::copy(std::span<const HostArrayCopy> copies) {
  if (was_forked()) {
    return Error{"a process that was forked cannot copy to a device: start its processes by `spawn`"};
  }
  const std::vector<ChunkLoad> loads = cut_into_loads(copies, options_.chunk_bytes);
  const std::lock_guard one(copying_);
  const bool helped = loads.size() > 1 && !threads_.empty();
  {
    const std::lock_guard lock(mutex_);
    loads_ = loads;
    next_load_ = 0;
    error_.reset();
    if (helped) {
      ++round_;
      working_ = threads_.size();
    }
  }
  if (helped) changed_.notify_all();
  run_loads();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return working_ == 0; });
  loads_ = {};
  if (error_) return *error_;
  return {};
}

void HostToDevice::work() {
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || round_ != done; });
    if (stopping_) return;
    done = round_;
    lock.unlock();
    run_loads();
    lock.lock();
    if (--working_ == 0) changed_.notify_all();
  }
}

void HostToDevice::run_loads() {
  const cuda::CurrentContext current(driver_, context_->get());
  for (;;) {
    const std::size_t number = next_load_.fetch_add(1);
    if (number >= loads_.size()) return;
    const ChunkLoad& load = loads_[number];
    Chunk& chunk = *chunks_[load.pinned ? 0 : next_chunk_.fetch_add(1) % chunks_.size()];
    if (auto error = run(load, chunk)) {
      driver_.synchronize_stream(stream_);  // started copies still read their chunks
      fail(*std::move(error));
    }
  }
}

std::optional<Error> HostToDevice::run(const ChunkLoad& load, Chunk& chunk) const {
  if (load.pinned) {
    const HostArrayCopy& array = load.copies.front();
    const auto status = driver_.copy_to_device(array.to, array.from, array.bytes, stream_);
    if (status != cuda::kSuccess) return driver_.error("cuMemcpyHtoDAsync", status);
    return std::nullopt;
  }
  const std::lock_guard lock(chunk.filling);
  if (chunk.in_flight) {
    if (const auto status = driver_.synchronize_event(chunk.copied); status != cuda::kSuccess) {
      return driver_.error("cuEventSynchronize", status);
    }
    chunk.in_flight = false;
  }
  std::byte* free = chunk.memory;
  for (const HostArrayCopy& array : load.copies) {
    std::memcpy(free, array.from, array.bytes);
    const auto status = driver_.copy_to_device(array.to, free, array.bytes, stream_);
    if (status != cuda::kSuccess) return driver_.error("cuMemcpyHtoDAsync", status);
    free += array.bytes;
  }
  if (const auto status = driver_.record_event(chunk.copied, stream_); status != cuda::kSuccess) {
    return driver_.error("cuEventRecord", status);
  }
  chunk.in_flight = true;
  return std::nullopt;
}

void HostToDevice::fail(Error error) {
  next_load_ = loads_.size();  // starts no further loads
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

std::vector<ChunkLoad> cut_into_loads(std::span<const HostArrayCopy> copies, std::size_t chunk_bytes) {
  std::vector<ChunkLoad> loads;
  ChunkLoad load;
  std::size_t room = chunk_bytes;
  const auto close = [&] {
    if (!load.copies.empty()) loads.push_back(std::move(load));
    load = {};
    room = chunk_bytes;
  };
  for (HostArrayCopy rest : copies) {
    if (rest.pinned && rest.bytes > 0) {
      loads.push_back({{rest}, true});
      continue;
    }
    while (rest.bytes > 0) {
      const std::size_t bytes = std::min(rest.bytes, room);
      load.copies.push_back({rest.from, rest.to, bytes, false});
      rest.from += bytes;
      rest.to += bytes;
      rest.bytes -= bytes;
      room -= bytes;
      if (room == 0) close();
    }
  }
  close();
  return loads;
}

}  // namespace tidemark
