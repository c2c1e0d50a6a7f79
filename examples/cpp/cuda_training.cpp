// A training loop in plain CUDA, without PyTorch. Its batches are copied to the GPU ahead of the loop, its steps are
// measured, and what Tidemark says of the device's memory is compared with what CUDA says. Where a training has
// kernels, this one sets and copies memory, so that it needs the CUDA runtime and a C++ compiler, and no nvcc.
//
//     cuda_training [RECORDING] [REPORT]       (default: cuda_training.tide, cuda_training.json)
//
// `tidemark run --driver on -- cuda_training` also records each allocation. The last line on stdout is JSON: what the
// program held at its marks. Exit code 1: an error, or something differs.
#include <cuda_runtime_api.h>
#include <tidemark/memory_manager.h>
#include <tidemark/performance_monitor.h>
#include <tidemark/prefetch_loader.h>
#include <tidemark/profiler.h>
#include <tidemark/recording.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kParameterBytes = 64 * kMiB;
constexpr std::size_t kSamples = 256;                 // of a batch
constexpr std::size_t kSampleBytes = 32 * 1024;       // of an image
constexpr std::size_t kActivationBytes = 48 * kMiB;   // of a step
constexpr std::size_t kBytesForASample = 256 * kMiB;  // in the search for the largest batch
constexpr std::size_t kSteps = 40;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// What was compared with what CUDA or the program itself says.
class Comparison {
 public:
  void operator()(const char* what, std::uint64_t ours, std::uint64_t theirs) {
    std::cout << what << ": " << ours << (ours == theirs ? "" : ", but it is " + std::to_string(theirs)) << "\n";
    fine_ = fine_ && ours == theirs;
  }
  void require(const char* what, bool holds) {
    std::cout << what << ": " << (holds ? "yes" : "no") << "\n";
    fine_ = fine_ && holds;
  }
  [[nodiscard]] bool fine() const { return fine_; }

 private:
  bool fine_ = true;
};

// Memory of the device.
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

struct Images {
  std::vector<std::byte> pixels;
  std::vector<std::int64_t> classes;
};

// Read on a thread of the loader: from a file or a data set, in other programs.
std::optional<tidemark::HostBatch> read_batch(std::size_t number) {
  if (number == kSteps) return std::nullopt;
  const auto images = std::make_shared<Images>();
  images->pixels.assign(kSamples * kSampleBytes, static_cast<std::byte>(number));
  images->classes.resize(kSamples);
  std::iota(images->classes.begin(), images->classes.end(), static_cast<std::int64_t>(number));
  return tidemark::HostBatch{{{images->pixels.data(), images->pixels.size()},
                              {images->classes.data(), images->classes.size() * sizeof(std::int64_t)}},
                             images};
}

// Free memory as Tidemark and CUDA see it; the former is returned.
std::uint64_t free_memory(const tidemark::MemoryManager& manager, Comparison& compare) {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const tidemark::MemoryState state = manager.check_memory();
  compare("memory of the device", state.total_bytes, total);
  compare("of that free", state.free_bytes, free);
  return state.free_bytes;
}

// The largest batch, by allocating what it would take.
void search_batch_size(const tidemark::MemoryManager& manager, Comparison& compare) {
  const std::uint64_t largest = manager.check_memory().free_bytes / kBytesForASample;
  const auto fits = [](std::size_t samples) {
    void* activations = nullptr;
    if (cudaMalloc(&activations, samples * kBytesForASample) != cudaSuccess) {
      cudaGetLastError();  // taken note of
      return false;
    }
    check(cudaMemset(activations, 0, samples * kBytesForASample), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaFree(activations), "cudaFree");
    return true;
  };
  tidemark::BatchSizeSettings settings;
  settings.max_probes = 24;  // instead of 8: this step is so short that its peak may be missed
  const std::size_t size = manager.auto_batch_size(fits, settings).batch_size.value_or(0);
  std::cout << "batch size: " << size << "; free memory is that of " << largest << "\n";
  // The driver may keep some memory for itself.
  compare.require("within 5% of the largest",
                  size <= largest && static_cast<double>(size) >= 0.95 * static_cast<double>(largest - 1));
}

struct Training {
  Comparison& compare;
  tidemark::PerformanceMonitor& monitor;
  cudaStream_t stream;
  void* gradients;
};

// One step: what a program with kernels launches on its stream.
void step(const Training& training, const tidemark::DeviceBatch& batch) {
  const tidemark::Step recorded_step;
  const auto forward = training.monitor.phase(tidemark::StepPhase::forward);
  void* activations = nullptr;
  check(cudaMallocAsync(&activations, kActivationBytes, training.stream), "cudaMallocAsync");
  check(cudaMemcpyAsync(activations, batch[0].data, batch[0].bytes, cudaMemcpyDeviceToDevice, training.stream),
        "forward");
  check(cudaMemsetAsync(training.gradients, 0, kParameterBytes, training.stream), "backward");
  std::vector<std::int64_t> classes(kSamples);
  check(cudaMemcpyAsync(classes.data(), batch[1].data, batch[1].bytes, cudaMemcpyDeviceToHost, training.stream),
        "classes");
  check(cudaFreeAsync(activations, training.stream), "cudaFreeAsync");
  check(cudaStreamSynchronize(training.stream), "cudaStreamSynchronize");
  if (classes.front() != static_cast<std::int64_t>(batch.number()) ||
      classes.back() != static_cast<std::int64_t>(batch.number() + kSamples - 1)) {
    throw std::runtime_error("batch " + std::to_string(batch.number()) + " came with the bytes of another one");
  }
  training.monitor.log_metric("number of the batch", static_cast<double>(classes.front()));
}

void train(const Training& training) {
  tidemark::PrefetchSettings settings;
  settings.pinned_bytes = 16 * kMiB;
  tidemark::PrefetchLoader loader(read_batch, settings);
  for (;;) {
    std::optional<tidemark::DeviceBatch> batch;
    {
      const auto waiting = training.monitor.waiting_for_data();
      batch = loader.next(training.stream);
    }
    if (!batch) break;
    step(training, *batch);
    training.monitor.step(kSamples);
  }
  const tidemark::PrefetchStatistics copied = loader.statistics();
  training.compare("batches", copied.batches, kSteps);
  training.compare("bytes copied ahead", copied.copied_bytes,
                   kSteps * kSamples * (kSampleBytes + sizeof(std::int64_t)));
  training.compare("pinned bytes of the loader", copied.pinned_bytes, settings.pinned_bytes);
}

int run(const std::string& recording, const std::string& report) {
  Comparison compare;
  const tidemark::MemoryManager manager;  // of device 0
  tidemark::RecordingOptions options;
  options.replace = true;
  tidemark::Profiler profiler(recording, options);
  profiler.start();
  tidemark::PerformanceMonitor monitor;
  monitor.start_monitoring();

  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
  std::uint64_t keep = UINT64_MAX;  // what is freed into the pool stays there
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");

  const std::uint64_t free_before = free_memory(manager, compare);
  tidemark::mark("begin");
  const DeviceArray parameters(kParameterBytes);
  const DeviceArray gradients(kParameterBytes);
  const DeviceArray optimizer_state(2 * kParameterBytes);
  tidemark::mark("model");
  compare("bytes of the model", free_before - free_memory(manager, compare), 4 * kParameterBytes);

  train({compare, monitor, stream, gradients.data()});
  std::uint64_t pool_bytes = 0;
  check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &pool_bytes), "cudaMemPoolGetAttribute");
  tidemark::mark("trained");
  search_batch_size(manager, compare);
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");

  monitor.stop_monitoring();
  std::ofstream(report) << monitor.get_performance_report();
  compare("steps that the monitor has", monitor.metrics().at(0).count, kSteps);
  compare("the last one's number", static_cast<std::uint64_t>(monitor.metrics().at(0).max.value_or(0)), kSteps - 1);
  for (const tidemark::RecordedFile& file : profiler.stop()) {
    const std::string steps = "\"count\": " + std::to_string(kSteps);
    const std::string leaks = tidemark::Recording(file.path).analyze("leaks");
    compare.require("the recording has the steps", leaks.find(steps) != std::string::npos);
  }
  std::cout << "{\"device\": \"cuda-driver:0\", \"held\": {\"begin\": 0, \"model\": " << 4 * kParameterBytes
            << ", \"trained\": " << 4 * kParameterBytes + pool_bytes << "}}\n";
  return compare.fine() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "cuda_training.tide", argc > 2 ? argv[2] : "cuda_training.json");
  } catch (const std::exception& error) {
    std::cerr << "cuda_training: " << error.what() << "\n";
    return 1;
  }
}
