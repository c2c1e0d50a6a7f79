// A training loop with libtorch, on the GPU where there is one: a classifier of random images. It is recorded, batches
// are copied to the GPU ahead of the loop, its steps are measured, and what the recording says of PyTorch's memory is
// compared with PyTorch's own counters.
//
//     libtorch_training [RECORDING] [REPORT]       (default: libtorch_training.tide, libtorch_training.json)
//
// The last line on stdout is JSON. Exit code 1: an error, or the recording differs from the counters.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <tidemark/performance_monitor.h>
#include <tidemark/prefetch_loader.h>
#include <tidemark/profiler.h>
#include <tidemark/recording.h>
#include <torch/cuda.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kBatch = 512;
constexpr std::int64_t kPixels = 3 * 32 * 32;
constexpr std::int64_t kClasses = 10;
constexpr std::size_t kBatchesPerEpoch = 10;
constexpr std::size_t kEpochs = 2;

struct Images {
  std::vector<float> pixels;
  std::vector<std::int64_t> classes;
};

// Read on a thread of the loader: from a file or a data set, in other programs.
std::optional<tidemark::HostBatch> read_batch(std::size_t number) {
  if (number == kEpochs * kBatchesPerEpoch) return std::nullopt;
  std::minstd_rand random(static_cast<unsigned>(number) + 1);
  std::uniform_real_distribution<float> brightness(-1, 1);
  const auto images = std::make_shared<Images>();
  for (std::int64_t n = 0; n < kBatch; ++n) {
    images->classes.push_back(static_cast<std::int64_t>(random() % kClasses));
    const float offset = 0.1F * static_cast<float>(images->classes.back());
    for (std::int64_t pixel = 0; pixel < kPixels; ++pixel) images->pixels.push_back(offset + brightness(random));
  }
  return tidemark::HostBatch{{{images->pixels.data(), images->pixels.size() * sizeof(float)},
                              {images->classes.data(), images->classes.size() * sizeof(std::int64_t)}},
                             images};
}

struct Peaks {
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
};

// What PyTorch's allocator has counted since the program began.
Peaks peaks_by_pytorch(c10::DeviceIndex device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {static_cast<std::uint64_t>(stats.allocated_bytes[all].peak),
          static_cast<std::uint64_t>(stats.reserved_bytes[all].peak)};
}

std::optional<Peaks> recorded_peaks(const std::string& file, const std::string& device) {
  for (const tidemark::DeviceMemory& memory : tidemark::Recording(file).devices()) {
    if (memory.device == device) return Peaks{memory.peak_allocated_bytes, memory.peak_reserved_bytes.value_or(0)};
  }
  return std::nullopt;
}

void train(at::Device device, tidemark::PerformanceMonitor& monitor) {
  torch::nn::Sequential model(torch::nn::Linear(kPixels, 1024), torch::nn::ReLU(), torch::nn::Linear(1024, 1024),
                              torch::nn::ReLU(), torch::nn::Linear(1024, kClasses));
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  tidemark::Metric loss_metric = monitor.metric("loss");  // looked up once

  tidemark::PrefetchSettings settings;
  settings.device = device.is_cuda() ? device.index() : -1;
  tidemark::PrefetchLoader loader(read_batch, settings);
  // What PyTorch computes is put on its current stream: it waits there for the copies of a batch.
  void* const stream = device.is_cuda() ? c10::cuda::getCurrentCUDAStream(device.index()).stream() : nullptr;
  for (;;) {
    std::optional<tidemark::DeviceBatch> batch;
    {
      const auto waiting = monitor.waiting_for_data();
      batch = loader.next(stream);
    }
    if (!batch) break;
    const std::size_t epoch = batch->number() / kBatchesPerEpoch;
    if (batch->number() % kBatchesPerEpoch == 0) tidemark::mark("epoch " + std::to_string(epoch));

    const tidemark::Step step;
    // Tensors of the loader's memory: it is used for another batch after what is on the stream when `batch` ends.
    const at::Tensor images =
        at::from_blob((*batch)[0].data, {kBatch, kPixels}, at::TensorOptions(at::kFloat).device(device));
    const at::Tensor classes = at::from_blob((*batch)[1].data, {kBatch}, at::TensorOptions(at::kLong).device(device));
    at::Tensor loss;
    {
      const tidemark::Scope scope("forward");
      const auto forward = monitor.phase(tidemark::StepPhase::forward);
      loss = torch::nn::functional::cross_entropy(model->forward(images), classes);
    }
    {
      const tidemark::Scope scope("backward");
      const auto backward = monitor.phase(tidemark::StepPhase::backward);
      optimizer.zero_grad();
      loss.backward();
    }
    {
      const tidemark::Scope scope("optimizer");
      const auto updating = monitor.phase(tidemark::StepPhase::optimizer);
      optimizer.step();
    }
    loss_metric.log(loss.item<double>());
    monitor.step(kBatch);
  }
  const tidemark::PrefetchStatistics copied = loader.statistics();
  std::cout << copied.batches << " batches, " << copied.copied_bytes << " bytes copied ahead; the loop waited "
            << static_cast<double>(copied.waited_ns) / 1e9 << " s for them\n";
}

// Whether the recording agrees with PyTorch; true where there is nothing to compare.
bool compare(at::Device device, const std::vector<tidemark::RecordedFile>& files) {
  if (!device.is_cuda()) {
    std::cout << "no GPU: PyTorch counts no memory of the CPU\n";
    return true;
  }
  const Peaks pytorch = peaks_by_pytorch(device.index());
  const auto row = [](const char* what, std::uint64_t counted, std::uint64_t recorded) {
    std::cout << "peak " << what << ": " << counted << " bytes by PyTorch, " << recorded << " recorded\n";
    return counted == recorded;
  };
  bool equal = true;
  if (files.empty()) {
    std::cout << "recorded by tidemark run, whose file has the peaks\n";
  } else {
    const Peaks recorded = recorded_peaks(files.front().path, device.str()).value_or(Peaks{});
    equal = row("allocated", pytorch.allocated, recorded.allocated) && equal;
    equal = row("reserved", pytorch.reserved, recorded.reserved) && equal;
  }
  std::cout << "{\"device\": \"" << device.str() << "\", \"max_memory_allocated\": " << pytorch.allocated
            << ", \"max_memory_reserved\": " << pytorch.reserved << "}\n";
  return equal;
}

int run(const std::string& recording, const std::string& report) {
  const at::Device device = torch::cuda::is_available() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  tidemark::RecordingOptions options;
  options.replace = true;
  tidemark::Profiler profiler(recording, options);
  profiler.start();  // before the first tensor on the GPU: what was allocated before is not seen
  tidemark::PerformanceMonitor monitor;
  monitor.start_monitoring();
  train(device, monitor);
  monitor.stop_monitoring();
  std::ofstream(report) << monitor.get_performance_report();
  for (const tidemark::MetricSummary& metric : monitor.metrics()) {
    std::cout << metric.count << " steps, " << metric.name << " " << metric.mean.value_or(0) << " on average\n";
  }
  return compare(device, profiler.stop()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "libtorch_training.tide", argc > 2 ? argv[2] : "libtorch_training.json");
  } catch (const std::exception& error) {
    std::cerr << "libtorch_training: " << error.what() << "\n";
    return 1;
  }
}
