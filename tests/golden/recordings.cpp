#include "golden/recordings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "golden/host_recording.h"
#include "trace/writer.h"

namespace tidemark::testing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr Device kCpu = {DeviceType::cpu, 0};
constexpr Device kGpu = {DeviceType::cuda, 0};

ProcessInfo process(std::int64_t pid, std::optional<std::int32_t> rank) {
  ProcessInfo info;
  info.pid = pid;
  info.parent_pid = 1;
  info.rank = rank;
  info.local_rank = rank;
  if (rank) info.world_size = 2;
  info.hostname = "node7";
  info.command_line = "python train.py --epochs 3";
  info.python_version = "3.11.7";
  info.torch_version = "2.4.0";
  info.stack_mode = "both";
  info.recorder_version = "0.1.0";
  info.start_wall_ns = 1'700'000'000'000'000'000;  // 2023-11-14 22:13:20 UTC
  return info;
}

class Recording {
 public:
  Recording(const std::string& path, const ProcessInfo& info) {
    auto sink = open_file_sink(path, true);
    EXPECT_TRUE(sink.ok());
    auto writer = TraceWriter::create(std::move(*sink), info);
    EXPECT_TRUE(writer.ok());
    writer_ = std::move(*writer);
    main_ = writer_->thread({100, "python"});
    autograd_ = writer_->thread({101, "pt_autograd_0"});
  }

  StackId python(StackId parent, const char* function, const char* file, std::uint32_t line) {
    Location location;
    location.function = writer_->string(function);
    location.file = writer_->string(file);
    location.line = line;
    return writer_->stack(parent, writer_->location(location));
  }
  StackId native(StackId parent, std::uint64_t offset, const char* path = "/nonexistent/libtorch_cpu.so") {
    ModuleInfo module;
    module.path = writer_->string(path);
    module.build_id = "0011";
    Location location;
    location.kind = Location::Kind::native;
    location.module = writer_->module(module);
    location.offset = offset;
    return writer_->stack(parent, writer_->location(location));
  }
  void allocate(std::uint64_t time_ns, std::uint64_t address, std::uint64_t size, Device device, StackId stack,
                bool autograd = false) {
    Event event = start(EventKind::allocate, time_ns, device);
    event.address = address;
    event.size = size;
    event.stack = stack;
    event.thread = autograd ? autograd_ : main_;
    sizes_[{address, device == kGpu}] = size;
    if (device == kGpu) allocated_ += size;
    write(event);
  }
  /// Allocates in an autograd node, with the number of a node of the main thread; without `node`: in the forward pass,
  /// before the main thread made the node with that number.
  void allocate(std::uint64_t time_ns, std::uint64_t address, std::uint64_t size, StackId stack, std::uint64_t sequence,
                const char* node) {
    Event event = start(EventKind::allocate, time_ns, kGpu);
    event.address = address;
    event.size = size;
    event.stack = stack;
    event.thread = node == nullptr ? main_ : autograd_;
    if (node == nullptr) {
      event.sequence = sequence;
    } else {
      event.node = writer_->autograd_node({writer_->string(node), main_});
      event.node_sequence = sequence;
    }
    sizes_[{address, true}] = size;
    allocated_ += size;
    write(event);
  }
  /// A module below the outermost one, which comes first.
  NnModuleId nn_module(const char* path, const char* type) {
    const NnModuleId module = writer_->nn_module({0x7f0000000000 + 64 * ++nn_modules_});
    if (!root_.valid()) root_ = module;
    writer_->nn_module_name({module, root_, writer_->string(path), writer_->string(type)});
    return module;
  }
  /// The call of a module.
  StackId call(StackId parent, NnModuleId module) {
    Location location;
    location.function = writer_->string("Module._wrapped_call_impl");
    location.file = writer_->string("/opt/lib/python3.11/site-packages/torch/nn/modules/module.py");
    location.line = 1775;
    location.nn_module = module;
    return writer_->stack(parent, writer_->location(location));
  }
  /// A float32 tensor that fills its block.
  void tensor(ModelTensor::Role role, std::uint64_t time_ns, std::uint64_t address, std::uint64_t bytes,
              NnModuleId module) {
    ModelTensor tensor;
    tensor.role = role;
    tensor.device = kGpu;
    tensor.requires_grad = true;
    tensor.time_ns = time_ns;
    tensor.address = address;
    tensor.storage_bytes = tensor.bytes = bytes;
    tensor.module = module;
    tensor.name = writer_->string("weight");
    if (role == ModelTensor::Role::optimizer_state) tensor.state = writer_->string("exp_avg");
    tensor.dtype = writer_->string("float32");
    tensor.shape = {bytes / 4};
    writer_->tensor(tensor);
  }
  void free(std::uint64_t time_ns, std::uint64_t address, Device device) {
    Event event = start(EventKind::free, time_ns, device);
    event.address = address;
    if (device == kGpu) allocated_ -= sizes_[{address, true}];
    write(event);
  }
  void out_of_memory(std::uint64_t time_ns, std::uint64_t size, StackId stack) {
    Event event = start(EventKind::out_of_memory, time_ns, kGpu);
    event.size = size;
    event.stack = stack;
    write(event);
  }
  void mark(std::uint64_t time_ns, EventKind kind) { write(start(kind, time_ns, kCpu)); }
  void name(std::uint64_t time_ns, const char* text) {
    writer_->mark({Mark::Kind::point, time_ns, writer_->string(text), main_});
  }
  void sample(const SampleRecord& record) { writer_->sample(record); }
  void reserve(std::uint64_t bytes) { reserved_ = bytes; }
  void already_allocated(std::uint64_t bytes) { allocated_ += bytes; }
  void loss(const Loss& loss) { writer_->loss(loss); }
  void finish(std::uint64_t time_ns) { EXPECT_TRUE(writer_->finish({time_ns, true}).ok()); }
  void flush() { EXPECT_TRUE(writer_->flush().ok()); }

 private:
  static Event start(EventKind kind, std::uint64_t time_ns, Device device) {
    Event event;
    event.kind = kind;
    event.time_ns = time_ns;
    event.device = device;
    return event;
  }
  void write(Event event) {
    event.thread = event.thread.valid() ? event.thread : main_;
    if (event.device == kGpu) {
      event.has_totals = true;
      event.total_allocated = allocated_;
      event.total_reserved = reserved_;
    }
    EXPECT_TRUE(writer_->event(event).ok());
  }

  std::unique_ptr<TraceWriter> writer_;
  ThreadId main_;
  ThreadId autograd_;
  NnModuleId root_;
  std::uint64_t nn_modules_ = 0;
  std::map<std::pair<std::uint64_t, bool>, std::uint64_t> sizes_;
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
};

// Two layers with weights; three steps whose activations are freed in reverse; gradients from the autograd thread.
void train(Recording& recording, std::uint64_t weight_bytes, std::uint64_t activation_bytes) {
  const StackId module = recording.python({}, "<module>", "/home/me/project/train.py", 90);
  const StackId init =
      recording.python(recording.python(module, "Net.__init__", "/home/me/project/model.py", 12), "Linear.__init__",
                       "/opt/lib/python3.11/site-packages/torch/nn/modules/linear.py", 96);
  const StackId step = recording.python(module, "train.<locals>.step", "/home/me/project/train.py", 40);
  const StackId batch = recording.python(step, "batch", "/home/me/project/data.py", 7);
  std::vector<StackId> forwards;
  for (const std::uint32_t line : {31U, 33U}) {
    const StackId forward = recording.python(step, "Net.forward", "/home/me/project/model.py", line);
    const StackId linear =
        recording.python(forward, "linear", "/opt/lib/python3.11/site-packages/torch/nn/functional.py", 1848);
    forwards.push_back(recording.native(linear, 0x1230 + line));
  }
  const StackId backward = recording.native({}, 0x9000);
  recording.reserve(20 * kMiB);
  recording.allocate(1 * kMs, 0x1000, weight_bytes, kGpu, init);
  recording.allocate(2 * kMs, 0x2000, weight_bytes, kGpu, init);
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::uint64_t time = (10 + round * 30) * kMs;
    if (round == 1) recording.reserve(64 * kMiB);
    recording.allocate(time, 0x100, kMiB / 2, kCpu, batch);
    recording.allocate(time + 2 * kMs, 0x3000, activation_bytes, kGpu, forwards[0]);
    recording.allocate(time + 4 * kMs, 0x4000, activation_bytes * (1 + round % 2), kGpu, forwards[1]);
    recording.allocate(time + 8 * kMs, 0x5000, weight_bytes, kGpu, backward, true);
    recording.free(time + 10 * kMs, 0x4000, kGpu);
    recording.free(time + 11 * kMs, 0x3000, kGpu);
    recording.free(time + 20 * kMs, 0x5000, kGpu);
    recording.free(time + 21 * kMs, 0x100, kCpu);
  }
}

// Twenty-four steps; each keeps its loss, and every fourth the outputs of an evaluation. One cache fills and stays.
void train_and_leak(Recording& recording) {
  const StackId module = recording.python({}, "<module>", "/home/me/project/train.py", 90);
  const StackId step = recording.python(module, "train.<locals>.step", "/home/me/project/train.py", 40);
  const StackId forward = recording.python(step, "Net.forward", "/home/me/project/model.py", 31);
  const StackId loss = recording.python(step, "loss", "/home/me/project/train.py", 43);
  const StackId mask = recording.python(forward, "mask", "/home/me/project/model.py", 77);
  const StackId evaluate = recording.python(module, "evaluate", "/home/me/project/train.py", 70);
  const StackId update =
      recording.python(step, "AdamW.step", "/opt/lib/python3.11/site-packages/torch/optim/adamw.py", 220);
  recording.reserve(64 * kMiB);
  for (std::uint64_t round = 0; round < 24; ++round) {
    const std::uint64_t time = (10 + round * 10) * kMs;
    recording.allocate(time, 0x1000, 8 * kMiB, kGpu, forward);
    if (round < 7) recording.allocate(time + 1 * kMs, 0x100000 + round * 0x100, kMiB, kGpu, mask);
    recording.allocate(time + 2 * kMs, 0x200000 + round * 0x1000, 512, kGpu, loss);
    recording.free(time + 3 * kMs, 0x1000, kGpu);
    recording.allocate(time + 4 * kMs, 0x2000, 4 * kMiB, kGpu, update);
    recording.free(time + 5 * kMs, 0x2000, kGpu);
    if (round % 4 == 3) recording.allocate(time + 6 * kMs, 0x300000 + round * 0x10000, 40'000, kGpu, evaluate);
  }
}

// Two layers of an attention (weight 4 MiB) and an MLP (8 MiB), and two steps of momentum SGD, with the recorder's
// data about modules, tensors and autograd nodes. The peak is at 82 ms, when the backward pass of the second step has
// made its first gradient (MiB):
//
//   not recorded       2
//   parameters        24  4 + 8 + 4 + 8, asked for: exact
//   optimizer state   24  also, made at the end of the first step: exact
//   input              1
//   activations       44  2 + 20 + 2 + 20
//   gradient           8  of layers.1.mlp, of the same node and size as the one asked for in the first step
//                    103
void train_layers(Recording& recording) {
  constexpr const char* kLinear = "torch.nn.modules.linear.Linear";
  constexpr const char* kModel = "/home/me/project/model.py";
  struct Layer {
    const char* path;
    const char* type;
    std::uint32_t line;
    std::uint64_t weight_mib;
    std::uint64_t activation_mib;
    NnModuleId module;
  };
  const NnModuleId net = recording.nn_module("", "model.Net");
  std::array<NnModuleId, 2> blocks{};
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    blocks[index] = recording.nn_module(index == 0 ? "layers.0" : "layers.1", "model.Block");
  }
  std::array<Layer, 4> layers = {{{"layers.0.attention", kLinear, 14, 4, 2, {}},
                                  {"layers.0.mlp", kLinear, 15, 8, 20, {}},
                                  {"layers.1.attention", kLinear, 14, 4, 2, {}},
                                  {"layers.1.mlp", kLinear, 15, 8, 20, {}}}};
  const StackId main = recording.python({}, "<module>", "/home/me/project/train.py", 90);
  const StackId init = recording.python(recording.python(main, "Net.__init__", kModel, 22), "Linear.__init__",
                                        "/opt/lib/python3.11/site-packages/torch/nn/modules/linear.py", 96);
  const StackId batch =
      recording.python(recording.python(main, "_BaseDataLoaderIter.__next__",
                                        "/opt/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 708),
                       "collate", "/home/me/project/data.py", 7);
  const StackId update = recording.python(recording.python(main, "train", "/home/me/project/train.py", 46), "SGD.step",
                                          "/opt/lib/python3.11/site-packages/torch/optim/sgd.py", 131);
  const StackId forward = recording.python(
      recording.call(recording.python(main, "train", "/home/me/project/train.py", 43), net), "Net.forward", kModel, 31);
  std::array<StackId, 4> stacks{};
  for (std::size_t index = 0; index < layers.size(); ++index) {
    Layer& layer = layers[index];
    layer.module = recording.nn_module(layer.path, layer.type);
    const StackId block =
        recording.python(recording.call(forward, blocks[index / 2]), "Block.forward", kModel, layer.line);
    stacks[index] = recording.python(recording.call(block, layer.module), "Linear.forward",
                                     "/opt/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125);
    recording.allocate(1 * kMs, 0x1000 + index, layer.weight_mib * kMiB, kGpu, init);
    recording.tensor(ModelTensor::Role::parameter, 5 * kMs, 0x1000 + index, layer.weight_mib * kMiB, layer.module);
  }
  std::uint64_t node = 0;  // the number of the next one
  for (std::uint64_t step = 0; step < 2; ++step) {
    const std::uint64_t time = (10 + step * 60) * kMs;
    const std::uint64_t gradients = 0x4000 + step * 0x100;
    recording.name(time, step == 0 ? "Tidemark.step#0" : "Tidemark.step#1");
    recording.allocate(time + 1 * kMs, 0x2000, kMiB, kGpu, batch);
    for (std::size_t index = 0; index < layers.size(); ++index) {
      const std::uint64_t at = time + (2 + 2 * index) * kMs;
      if (index == 1) recording.allocate(at, 0x2900, 3 * kMiB, stacks[index], node, nullptr);  // only temporarily
      if (index == 1) recording.free(at, 0x2900, kGpu);
      recording.allocate(at, 0x3000 + index, layers[index].activation_mib * kMiB, stacks[index], ++node, nullptr);
    }
    for (std::size_t index = layers.size(); index-- > 0;) {
      const std::uint64_t at = time + (12 + 2 * (3 - index)) * kMs;
      recording.allocate(at, gradients + index, layers[index].weight_mib * kMiB, {}, node - layers.size() + index,
                         "torch::autograd::generated::AddmmBackward0");
      recording.free(at + kMs, 0x3000 + index, kGpu);
    }
    recording.free(time + 20 * kMs, 0x2000, kGpu);
    for (std::size_t index = 0; index < layers.size(); ++index) {
      const Layer& layer = layers[index];
      if (step != 0) continue;
      recording.tensor(ModelTensor::Role::gradient, time + 21 * kMs, gradients + index, layer.weight_mib * kMiB,
                       layer.module);
      recording.allocate(time + 22 * kMs, 0x5000 + index, layer.weight_mib * kMiB, kGpu, update);
      recording.tensor(ModelTensor::Role::optimizer_state, time + 24 * kMs, 0x5000 + index, layer.weight_mib * kMiB,
                       layer.module);
    }
    recording.allocate(time + 23 * kMs, 0x6000, 8 * kMiB, kGpu, update);
    recording.free(time + 23 * kMs, 0x6000, kGpu);
    for (std::size_t index = 0; index < layers.size(); ++index) {
      recording.free(time + 25 * kMs, gradients + index, kGpu);
    }
  }
}

// Sixteen steps of two layers whose losses are kept with their autograd graphs: 8 MiB of each layer, 512 B of the loss
// and the input of 1 MiB stay. Besides, each step keeps 2 MiB in a cache.
void train_and_retain(Recording& recording) {
  constexpr const char* kModel = "/home/me/project/model.py";
  const NnModuleId net = recording.nn_module("", "model.Net");
  const StackId main = recording.python({}, "<module>", "/home/me/project/train.py", 90);
  const StackId batch = recording.python(main, "batch", "/home/me/project/data.py", 7);
  const StackId train = recording.python(main, "train", "/home/me/project/train.py", 43);
  const StackId forward = recording.python(recording.call(train, net), "Net.forward", kModel, 31);
  const StackId loss =
      recording.python(recording.python(main, "train", "/home/me/project/train.py", 44), "cross_entropy",
                       "/opt/lib/python3.11/site-packages/torch/nn/functional.py", 3026);
  const StackId update = recording.python(recording.python(main, "train", "/home/me/project/train.py", 46), "SGD.step",
                                          "/opt/lib/python3.11/site-packages/torch/optim/sgd.py", 131);
  const StackId cache = recording.python(main, "remember", "/home/me/project/train.py", 70);
  std::array<StackId, 2> layers{};
  for (std::uint32_t index = 0; index < layers.size(); ++index) {
    const NnModuleId layer = recording.nn_module(index == 0 ? "layers.0" : "layers.1", "model.Block");
    layers[index] = recording.python(recording.call(forward, layer), "Block.forward", kModel, 14 + index);
  }
  recording.reserve(512 * kMiB);
  recording.allocate(1 * kMs, 0x1000, 4 * kMiB, kGpu, main);
  recording.tensor(ModelTensor::Role::parameter, 5 * kMs, 0x1000, 4 * kMiB, net);
  std::uint64_t node = 1;  // the number of the next one
  for (std::uint64_t step = 0; step < 16; ++step) {
    const std::uint64_t time = (10 + step * 10) * kMs;
    const std::uint64_t address = 0x10000 + step * 0x100;
    recording.allocate(time, address, kMiB, batch, node, nullptr);
    recording.allocate(time + 1 * kMs, address + 1, 8 * kMiB, layers[0], ++node, nullptr);
    recording.allocate(time + 2 * kMs, address + 2, 8 * kMiB, layers[1], ++node, nullptr);
    recording.allocate(time + 3 * kMs, address + 3, 512, loss, ++node, nullptr);
    recording.allocate(time + 4 * kMs, 0x2000, 4 * kMiB, {}, node - 2, "torch::autograd::generated::AddmmBackward0");
    recording.allocate(time + 5 * kMs, 0x3000, 2 * kMiB, update, node, nullptr);
    recording.free(time + 6 * kMs, 0x3000, kGpu);
    recording.free(time + 6 * kMs, 0x2000, kGpu);
    recording.allocate(time + 7 * kMs, address + 4, 2 * kMiB, cache, node, nullptr);
  }
}

// One GPU that another process uses too. PyTorch's allocator and NCCL took memory from the driver. 20 s with little
// memory, then a buffer of one of twelve sizes each second, and 8 MiB a second that are reserved and stay unused;
// another process has 1,000 MiB of the GPU.
void fragment(Recording& recording) {
  constexpr std::uint64_t kSecond = 1000 * kMs;
  const StackId step = recording.python({}, "step", "/home/me/project/train.py", 40);
  const SampledDeviceId gpu{0};
  recording.sample(
      SampledDevice{"nvidia", 0, {}, 0, "NVIDIA H200", "GPU-1", "0000:65:00.0", std::uint64_t{8192} * kMiB});
  recording.reserve(2 * kMiB);
  recording.allocate(0, 0x10, kMiB / 2, kGpu, step);
  std::uint64_t reserved = 2;
  for (std::uint64_t second = 1; second < 220; ++second) {
    const bool warm = second > 20;
    if (warm) reserved = 600 + 8 * (second - 20);
    recording.reserve(reserved * kMiB);
    recording.allocate(second * kSecond, 0x1000, warm ? (300 + second * 7 % 12) * kMiB : kMiB / 4, kGpu, step);
    recording.free(second * kSecond + 600 * kMs, 0x1000, kGpu);
  }
  recording.sample(DeviceSample{219 * kSecond, gpu, (1000 + reserved) * kMiB, 600 * kMiB, 80, 50, 300'000});
}

// A buffer of 900 MiB at the beginning, of 300 MiB in each later second: the memory of the first stays reserved.
void keep_peak(Recording& recording) {
  constexpr std::uint64_t kSecond = 1000 * kMs;
  const StackId step = recording.python({}, "step", "/home/me/project/train.py", 40);
  recording.reserve(1000 * kMiB);
  for (std::uint64_t second = 0; second < 60; ++second) {
    recording.allocate(second * kSecond, 0x1000, (second == 0 ? 900 : 300) * kMiB, kGpu, step);
    recording.free(second * kSecond + 600 * kMs, 0x1000, kGpu);
  }
}

void train_beside_others(Recording& recording) {
  constexpr Device kDriver = {DeviceType::cuda_driver, 0};
  constexpr Device kPinned = {DeviceType::cuda_host, 0};
  const SampledDeviceId gpu{0};
  const StackId step = recording.python({}, "train.<locals>.step", "/home/me/project/train.py", 40);
  const auto driver_stack = [&](const char* library) {
    return recording.native(recording.native(step, 0x10, library), 0x20, "/nonexistent/libcuda.so.1");
  };
  const StackId allocator = driver_stack("/nonexistent/libc10_cuda.so");
  const StackId nccl = driver_stack("/nonexistent/libnccl.so.2");
  const auto sample = [&](std::uint64_t time_ns, std::uint64_t used_mib) {
    recording.sample(DeviceSample{time_ns, gpu, used_mib * kMiB, 600 * kMiB, 80, 50, 300'000});
  };
  const auto host = [&](std::uint64_t time_ns, std::uint64_t rss_mib, std::optional<std::uint64_t> pss_mib) {
    HostSample record;
    record.time_ns = time_ns;
    record.rss_bytes = rss_mib * kMiB;
    if (pss_mib) record.pss_bytes = *pss_mib * kMiB;
    recording.sample(record);
  };
  const auto processes = [&](std::uint64_t time_ns, std::uint64_t own_mib) {
    recording.sample(DeviceProcessesSample{time_ns,
                                           gpu,
                                           {{77, ProcessKind::recorded, own_mib * kMiB, "python train.py"},
                                            {78, ProcessKind::other, 900 * kMiB, "python serve.py --name \x1b[31mred"},
                                            {79, ProcessKind::other_namespace, 120 * kMiB, ""}}});
  };
  recording.sample(
      SampledDevice{"nvidia", 0, {}, 0, "NVIDIA H200", "GPU-1", "0000:65:00.0", std::uint64_t{8192} * kMiB});
  sample(0, 1030);
  host(0, 300, 250);
  recording.allocate(10 * kMs, 0x70000, 64 * kMiB, kPinned, driver_stack("/nonexistent/libc10_cuda.so"));
  recording.allocate(20 * kMs, 0x10000, 2048 * kMiB, kDriver, allocator);
  recording.reserve(2048 * kMiB);
  recording.allocate(20 * kMs, 0x1000, 1800 * kMiB, kGpu, step);
  recording.allocate(30 * kMs, 0x20000, 256 * kMiB, kDriver, nccl);
  processes(50 * kMs, 2804);
  sample(100 * kMs, 3830);
  host(100 * kMs, 900, {});
  recording.allocate(120 * kMs, 0x30000, 1024 * kMiB, kDriver, allocator);
  recording.reserve(3072 * kMiB);
  recording.allocate(120 * kMs, 0x2000, 900 * kMiB, kGpu, step);
  sample(200 * kMs, 4860);
  recording.free(220 * kMs, 0x2000, kGpu);
  host(250 * kMs, 1400, 1200);
  sample(300 * kMs, 4858);
  recording.free(320 * kMs, 0x1000, kGpu);
  host(410 * kMs, 700, {});
}

// The CPU comes first, the second GPU before the first, and the third has only a free.
void use_devices(Recording& recording) {
  const StackId load = recording.python({}, "load", "/home/me/project/data.py", 7);
  recording.allocate(1 * kMs, 0x100, 2 * kMiB, kCpu, load);
  recording.free(2 * kMs, 0x99, {DeviceType::cuda, 2});
  recording.allocate(3 * kMs, 0x1000, kMiB, {DeviceType::cuda, 1}, load);
  recording.reserve(20 * kMiB);
  recording.allocate(4 * kMs, 0x2000, kMiB, kGpu, load);
  recording.free(5 * kMs, 0x100, kCpu);
}

// Five ranks, the third with twice the activations, and a DataLoader worker of the first.
void write_job(const std::string& folder) {
  for (const std::int32_t rank : {0, 1, 2, 3, 4}) {
    Recording recording(folder + "/job.rank" + std::to_string(rank) + ".tide", process(600 + rank, rank));
    train(recording, 4 * kMiB, (rank == 2 ? 16 : 8) * kMiB);
    if (rank == 3) recording.out_of_memory(99 * kMs, 512 * kMiB, {});
    recording.finish(100 * kMs);
  }
  ProcessInfo info = process(650, 0);
  info.parent_pid = 600;
  Recording worker(folder + "/job.rank0.pid650.tide", info);
  const StackId loop = worker.python(worker.python({}, "<module>", "/home/me/project/train.py", 95), "_worker_loop",
                                     "/opt/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", 308);
  worker.allocate(5 * kMs, 0x100, kMiB / 2, kCpu, worker.python(loop, "batch", "/home/me/project/data.py", 7));
  worker.finish(90 * kMs);
}

void write_hostile(const std::string& path) {
  ProcessInfo info = process(666, {});
  info.command_line = "python \x1b]0;owned\x07\nsecond line \xFF\xFE";
  info.hostname = "node\x1b[31m";
  Recording recording(path, info);
  const StackId stack = recording.python({}, "f\x1b[2J\r\n,\"quoted\"", "/tmp/\xC3\x28\xE2\x80\xAE/gpj.py", 3);
  recording.allocate(1 * kMs, 0x10, 4096, kCpu, stack);
  recording.loss({Loss::Kind::disk, 1, "No space left\x1b[5m"});
  recording.finish(2 * kMs);
}

void write_safetensors(const std::string& path, const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(header.size() >> shift & 0xFFU);
  std::ofstream(path, std::ios::binary) << bytes << header << std::string(data_bytes, '\0');
}

void write_models(const std::string& folder) {
  std::string layers;
  std::size_t at = 24;
  for (const char* const layer : {"0", "1", "10"}) {  // in the library's alphabetical order
    layers += fmt::format(R"(,"model.layers.{}.up.weight":{{"dtype":"BF16","shape":[4,3],"data_offsets":[{},{}]}})",
                          layer, at, at + 24);
    at += 24;
  }
  write_safetensors(folder + "/model.safetensors",
                    R"({"__metadata__":{"format":"pt"},"embed\u001b[2J.weight":{"dtype":"F32","shape":[2,3],)"
                    R"("data_offsets":[0,24]})" +
                        layers + "}   ",
                    at);
  std::filesystem::create_directories(folder + "/adapter");
  write_safetensors(folder + "/adapter/adapter_model.safetensors",
                    R"({"base_model.model.q_proj.lora_A.weight":{"dtype":"F32","shape":[2,8],"data_offsets":[0,64]},)"
                    R"("base_model.model.q_proj.lora_B.weight":{"dtype":"F32","shape":[4,2],"data_offsets":[64,96]},)"
                    R"("base_model.model.up.lora_A.weight":{"dtype":"F16","shape":[1,8],"data_offsets":[96,112]}})",
                    112);
  std::ofstream(folder + "/adapter/adapter_config.json")
      << R"({"peft_type":"LORA","r":2,"lora_alpha":16,"target_modules":["q_proj","up"],"base_model_name_or_path":"a/b"})";
  write_safetensors(folder + "/cut.safetensors", R"({"w":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}})", 31);
}

}  // namespace

void write_golden_recordings(const std::string& folder) {
  write_host_recordings(folder);
  {
    Recording recording(folder + "/training.tide", process(4711, {}));
    recording.already_allocated(3 * kMiB);
    train(recording, 4 * kMiB, 8 * kMiB);
    recording.out_of_memory(101 * kMs, 512 * kMiB, {});
    recording.mark(102 * kMs, EventKind::pause);
    recording.mark(105 * kMs, EventKind::resume);
    recording.free(106 * kMs, 0x77, kGpu);
    recording.finish(110 * kMs);
  }
  for (const std::int32_t rank : {0, 1}) {
    Recording recording(folder + "/rank" + std::to_string(rank) + ".tide", process(500 + rank, rank));
    train(recording, 4 * kMiB, (rank == 0 ? 8 : 12) * kMiB);
    recording.finish(100 * kMs);
  }
  write_job(folder);
  Recording leaking(folder + "/leaking.tide", process(12, {}));
  train_and_leak(leaking);
  leaking.finish(260 * kMs);
  Recording layers(folder + "/layers.tide", process(14, {}));
  layers.already_allocated(2 * kMiB);
  layers.reserve(128 * kMiB);
  train_layers(layers);
  layers.finish(130 * kMs);
  Recording retaining(folder + "/retaining.tide", process(15, {}));
  train_and_retain(retaining);
  retaining.finish(180 * kMs);
  Recording shared(folder + "/shared_gpu.tide", process(77, {}));
  train_beside_others(shared);
  shared.finish(400 * kMs);
  Recording fragmenting(folder + "/fragmenting.tide", process(34, {}));
  fragment(fragmenting);
  fragmenting.finish(220'000 * kMs);
  Recording held(folder + "/held_peak.tide", process(35, {}));
  keep_peak(held);
  held.finish(60'000 * kMs);
  Recording devices(folder + "/devices.tide", process(33, {}));
  use_devices(devices);
  devices.finish(10 * kMs);
  write_hostile(folder + "/hostile.tide");
  write_models(folder);
  Recording marked(folder + "/marked.tide", process(13, {}));
  marked.allocate(1 * kMs, 0x10, 1000, kCpu, {});
  std::uint64_t time_ns = 2 * kMs;
  for (const char* name : {"epoch 1", "peak", "12.5s", "epoch 1", "step:3", "it's; $(touch x) `touch x` \"$HOME\" \\n",
                           "\x1b[31mred", "two\nlines", ""}) {
    marked.name(time_ns += kMs, name);
  }
  marked.finish(20 * kMs);
  Recording(folder + "/empty.tide", process(8, {})).finish(5 * kMs);
  Recording killed(folder + "/killed.tide", process(9, {}));
  killed.allocate(1 * kMs, 0x10, 1000, kCpu, {});
  killed.flush();
  std::ofstream(folder + "/notes.txt") << "What I learnt today\n";
  std::ofstream(folder + "/report.json") << "{\n  \"recordings\": []\n}\n";
  std::ofstream(folder + "/model.pt") << "PK\x03\x04" << std::string(26, '\0') << "model/data.pkl";
  std::ofstream(folder + "/other.pickle") << "\x80\x04}.";
  std::ofstream(folder + "/objects.pickle") << "\x80\x04\x8c\x0ctorch._utils\x8c\x12_rebuild_tensor_v2\x93.";
  // The recording of docs/format.md up to its first frame, with a wrong bit in the header's checksum.
  std::ofstream(folder + "/damaged.tide", std::ios::binary)
      << std::string_view("\x89TIDE\r\n\x1A\x01\x00\x01\x00\xE2\xBB\x77\x25", 16);
}

}  // namespace tidemark::testing
