// cuDNN's backend API: graphs of operations, engines that execute them, and the workspace of a plan.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/convolution.h"
#include "phantom/libraries/convolution_workspace.h"
#include "phantom/libraries/tensor_descriptor.h"

namespace tidemark::phantom {

namespace {

struct CudnnGraph {
  std::vector<int> operations;             ///< cudnnBackendDescriptorType_t of each
  std::optional<Convolution> convolution;  ///< the convolution among them
  std::uint64_t summed_elements = 0;       ///< of tensors with summed matrices, such as gradients of heads in a group
};

/// PyTorch's defaults.
struct CudnnSettings {
  bool deterministic = false;  ///< torch.backends.cudnn.deterministic or torch.use_deterministic_algorithms
  bool benchmark = false;
  bool tf32 = true;  ///< for convolutions
};

// at::Context's members, by the names that libtorch_cpu.so exports from PyTorch 2.4 to 2.15.
constexpr const char* kGlobalContext = "_ZN2at13globalContextEv";
constexpr const char* kDeterministic = "_ZNK2at7Context18deterministicCuDNNEv";
constexpr const char* kDeterministicAlgorithms = "_ZNK2at7Context23deterministicAlgorithmsEv";
constexpr const char* kBenchmark = "_ZNK2at7Context14benchmarkCuDNNEv";
constexpr const char* kTf32 = "_ZNK2at7Context14allowTF32CuDNNEv";  // until 2.8
constexpr const char* kTf32Of = "_ZNK2at7Context14allowTF32CuDNNESt8optionalINS_9Float32OpEE";

// at::Float32Op
enum class Float32Op : int { all, convolution };

// Read from the PyTorch in this process; the defaults if there is none. Thread-safe.
CudnnSettings cudnn_settings() {
  CudnnSettings settings;
  void* const torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch == nullptr) return settings;
  auto* const global = reinterpret_cast<void* (*)()>(dlsym(torch, kGlobalContext));
  const void* const context = global != nullptr ? global() : nullptr;
  const auto ask = [&](const char* name, bool otherwise) {
    auto* const member = reinterpret_cast<bool (*)(const void*)>(dlsym(torch, name));
    return context != nullptr && member != nullptr ? member(context) : otherwise;
  };
  settings.deterministic = ask(kDeterministic, false) || ask(kDeterministicAlgorithms, false);
  settings.benchmark = ask(kBenchmark, false);
  settings.tf32 = ask(kTf32, true);
  using Tf32Of = bool (*)(const void*, std::optional<Float32Op>);
  if (auto* const of = reinterpret_cast<Tf32Of>(dlsym(torch, kTf32Of)); of != nullptr && context != nullptr)
    settings.tf32 = of(context, Float32Op::convolution);
  dlclose(torch);
  return settings;
}

constexpr int kMatmul = 19;  // CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR

// Convolutions were measured with PyTorch's defaults: with any engine, including those that compute 32-bit floating
// point with TF32, without benchmarking. Returns the settings that differ.
std::string other_settings(const Convolution& convolution) {
  const CudnnSettings settings = cudnn_settings();
  std::string text;
  if (settings.deterministic) text += ", deterministic";
  if (settings.benchmark) text += ", benchmark";
  if (!settings.tf32 && convolution.type == type_named("float")) text += ", without TF32";
  return text;
}

std::uint64_t workspace_of(const Convolution& convolution) {
  const ConvolutionWorkspace workspace = convolution_workspace(convolution);
  const std::string settings = other_settings(convolution);
  if (!workspace.measured || !is_measured_cudnn() || !settings.empty())
    count_estimate(Estimate::cudnn_workspace, "a convolution, " + layer_key(convolution) + ", batch size " +
                                                  std::to_string(convolution.image[0]) + settings);
  return workspace.bytes;
}

// As cudnnBackendDescriptorType_t.
std::string types_of(const CudnnGraph& graph) {
  std::string text;
  for (const int operation : graph.operations) text += " " + std::to_string(operation);
  return text;
}

// Bytes of the workspace that cuDNN requests. Counts estimates (gpu/usage.h).
std::uint64_t cudnn_workspace(const CudnnGraph& graph) {
  const auto products = std::count(graph.operations.begin(), graph.operations.end(), kMatmul);
  // Attention: with cuDNN 9.19 on an H200, 256 bytes; if heads share keys and values, also their gradients for each
  // head, in 16 bits, before they are summed.
  if (products >= 2) {
    if (!is_measured_cudnn() || cudnn_settings().deterministic) count_estimate(Estimate::cudnn_workspace, "attention");
    return 256 + graph.summed_elements * sizeof(std::uint16_t);
  }
  // Only single convolutions were measured.
  if (!graph.convolution || graph.operations.size() != 1)
    count_estimate(Estimate::cudnn_workspace, "a graph of operations" + types_of(graph));
  return graph.convolution ? workspace_of(*graph.convolution) : 0;
}

// cudnnBackendDescriptorType_t
constexpr int kOperationGraph = 15;
constexpr int kConvolutionForward = 10;
constexpr int kConvolutionBackwardFilter = 11;
constexpr int kConvolutionBackwardData = 12;
constexpr int kReduction = 22;
// cudnnBackendAttributeName_t
constexpr int kDilations = 102;
constexpr int kFilterStrides = 103;
constexpr int kPaddings = 105;  // before the image
constexpr int kHeuristicGraph = 201;
constexpr int kHeuristicResults = 202;
constexpr int kConfigurationEngine = 300;
constexpr int kPlanConfiguration = 401;
constexpr int kPlanWorkspace = 402;
constexpr int kGraphOperations = 801;
constexpr int kTensorType = 901;
constexpr int kTensorDimensions = 902;
constexpr int kTensorStrides = 903;
constexpr int kEngineGraph = 1300;
constexpr int kReductionInput = 1610;
constexpr int kReductionResult = 1611;
// cudnnBackendAttributeType_t
constexpr int kInt64 = 3;
constexpr int kInt32 = 23;

std::size_t size_of(int type) {
  switch (type) {
    case 2:   // BOOLEAN
    case 24:  // CHAR
      return 1;
    case 0:   // HANDLE
    case 3:   // INT64
    case 5:   // DOUBLE
    case 6:   // VOID_PTR
    case 15:  // BACKEND_DESCRIPTOR
      return 8;
    case 26:  // FRACTION: numerator and denominator
      return 16;
    default:  // INT32, FLOAT and enumerations
      return 4;
  }
}

// A descriptor: the attributes that were set, which can be read back, and its graph.
struct Descriptor {
  int type = 0;
  struct Attribute {
    std::int64_t count = 0;
    std::vector<char> bytes;
  };
  std::map<int, Attribute> attributes;
  std::shared_ptr<const CudnnGraph> graph;
  std::optional<Convolution> convolution;  // for an operation

  [[nodiscard]] std::vector<std::int64_t> numbers(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<std::int64_t> values(found->second.bytes.size() / sizeof(std::int64_t));
    std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(std::int64_t));
    return values;
  }
  [[nodiscard]] std::vector<const Descriptor*> descriptors(int name) const {
    std::vector<const Descriptor*> found;
    for (const std::int64_t pointer : numbers(name)) found.push_back(reinterpret_cast<const Descriptor*>(pointer));
    return found;
  }
  [[nodiscard]] const Descriptor* descriptor(int name) const {
    const std::vector<const Descriptor*> found = descriptors(name);
    return found.empty() ? nullptr : found[0];
  }
  [[nodiscard]] int number(int name) const {
    const auto found = attributes.find(name);
    int value = 0;
    if (found != attributes.end())
      std::memcpy(&value, found->second.bytes.data(), std::min<std::size_t>(found->second.bytes.size(), 4));
    return value;
  }
};

// The attribute names of a convolution's parts.
struct ConvolutionAttributes {
  int operation;
  Pass pass;
  int parameters;
  int filter;
  int image;
};
constexpr ConvolutionAttributes kConvolutions[] = {{kConvolutionForward, Pass::forward, 702, 703, 704},
                                                   {kConvolutionBackwardData, Pass::backward_data, 708, 709, 710},
                                                   {kConvolutionBackwardFilter, Pass::backward_filter, 714, 715, 716}};

// The convolution of an operation of that type; std::nullopt if a part is missing, or parts are inconsistent.
std::optional<Convolution> read_convolution(const Descriptor& operation, const ConvolutionAttributes& names) {
  const Descriptor* const parameters = operation.descriptor(names.parameters);
  const Descriptor* const filter = operation.descriptor(names.filter);
  const Descriptor* const image = operation.descriptor(names.image);
  if (parameters == nullptr || filter == nullptr || image == nullptr) return std::nullopt;
  Convolution convolution{.pass = names.pass,
                          .type = image->number(kTensorType),
                          .channels_last = false,
                          .image = image->numbers(kTensorDimensions),
                          .filter = filter->numbers(kTensorDimensions),
                          .strides = parameters->numbers(kFilterStrides),
                          .paddings = parameters->numbers(kPaddings),
                          .dilations = parameters->numbers(kDilations)};
  const std::vector<std::int64_t> strides = image->numbers(kTensorStrides);
  if (!is_valid(convolution) || strides.size() != convolution.image.size()) return std::nullopt;
  convolution.channels_last = strides[1] == 1 && strides.back() == convolution.image[1];
  return convolution;
}

// Input elements of a reduction that sums matrices, not within them.
std::uint64_t summed_elements(const Descriptor& operation) {
  const Descriptor* const input = operation.descriptor(kReductionInput);
  const Descriptor* const result = operation.descriptor(kReductionResult);
  if (operation.type != kReduction || input == nullptr || result == nullptr) return 0;
  const std::vector<std::int64_t> from = input->numbers(kTensorDimensions);
  const std::vector<std::int64_t> to = result->numbers(kTensorDimensions);
  const std::size_t rank = from.size();
  const bool whole = rank >= 2 && to.size() == rank && std::equal(from.end() - 2, from.end(), to.end() - 2);
  if (!whole || from == to) return 0;
  std::uint64_t elements = 1;
  for (const std::int64_t size : from) elements *= static_cast<std::uint64_t>(size);
  return elements;
}

// The graph of an operation graph's operations, which no longer exist when a plan is queried.
std::shared_ptr<const CudnnGraph> read_graph(const Descriptor& descriptor) {
  auto graph = std::make_shared<CudnnGraph>();
  for (const Descriptor* operation : descriptor.descriptors(kGraphOperations)) {
    if (operation == nullptr) continue;
    graph->operations.push_back(operation->type);
    graph->summed_elements += summed_elements(*operation);
    if (operation->convolution) graph->convolution = operation->convolution;
  }
  return graph;
}

// Copies the graph from the descriptors that a descriptor was made from.
void inherit_graph(Descriptor& descriptor, int name) {
  for (const Descriptor* source : descriptor.descriptors(name))
    if (source != nullptr && source->graph) descriptor.graph = source->graph;
}

}  // namespace

TIDEMARK_PHANTOM_API int cudnnBackendCreateDescriptor(int type, Descriptor** descriptor) {
  *descriptor = new Descriptor;
  (*descriptor)->type = type;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnBackendInitialize(Descriptor*) {
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnBackendExecute(Handle, Descriptor*, Descriptor*) {
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnBackendFinalize(Descriptor* descriptor) {
  for (const ConvolutionAttributes& names : kConvolutions) {
    if (names.operation != descriptor->type) continue;
    descriptor->convolution = read_convolution(*descriptor, names);
    if (!descriptor->convolution) return kCudnnBadParameter;
  }
  if (descriptor->type == kOperationGraph) descriptor->graph = read_graph(*descriptor);
  for (const int name : {kHeuristicGraph, kEngineGraph, kConfigurationEngine, kPlanConfiguration})
    inherit_graph(*descriptor, name);
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnBackendSetAttribute(Descriptor* descriptor, int name, int type, std::int64_t count,
                                                  const void* elements) {
  const auto* const bytes = static_cast<const char*>(elements);
  Descriptor::Attribute& attribute = descriptor->attributes[name];
  attribute.count = count;
  attribute.bytes.assign(bytes, bytes + static_cast<std::size_t>(count) * size_of(type));
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnBackendGetAttribute(Descriptor* descriptor, int name, int type, std::int64_t requested,
                                                  std::int64_t* count, void* elements) {
  const bool wanted = elements != nullptr && requested > 0;
  const auto found = descriptor->attributes.find(name);
  if (found != descriptor->attributes.end()) {
    if (count != nullptr) *count = found->second.count;
    const std::size_t bytes = static_cast<std::size_t>(requested) * size_of(type);
    if (wanted) std::memcpy(elements, found->second.bytes.data(), std::min(bytes, found->second.bytes.size()));
    return 0;
  }
  // The heuristics return one engine for each graph. The caller provides the descriptors.
  if (name == kHeuristicResults || name == kConfigurationEngine) {
    if (count != nullptr) *count = 1;
    Descriptor* const brought = wanted ? *static_cast<Descriptor**>(elements) : nullptr;
    if (brought != nullptr) brought->graph = descriptor->graph;
    return 0;
  }
  // Unset numbers are 0, and there are no knobs and notes.
  const bool number = type == kInt64 || type == kInt32;
  if (count != nullptr) *count = number ? 1 : 0;
  if (number && wanted) std::memset(elements, 0, size_of(type));
  if (name == kPlanWorkspace && wanted && descriptor->graph) {
    const auto bytes = static_cast<std::int64_t>(cudnn_workspace(*descriptor->graph));
    std::memcpy(elements, &bytes, sizeof bytes);
  }
  return 0;
}

}  // namespace tidemark::phantom
