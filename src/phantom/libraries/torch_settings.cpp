#include "phantom/libraries/torch_settings.h"

#include <dlfcn.h>

#include <optional>

namespace tidemark::phantom {
namespace {

// at::Context's members, by the names that libtorch_cpu.so exports from PyTorch 2.4 to 2.15.
constexpr const char* kGlobalContext = "_ZN2at13globalContextEv";
constexpr const char* kDeterministic = "_ZNK2at7Context18deterministicCuDNNEv";
constexpr const char* kDeterministicAlgorithms = "_ZNK2at7Context23deterministicAlgorithmsEv";
constexpr const char* kBenchmark = "_ZNK2at7Context14benchmarkCuDNNEv";
constexpr const char* kTf32 = "_ZNK2at7Context14allowTF32CuDNNEv";  // until 2.8
constexpr const char* kTf32Of = "_ZNK2at7Context14allowTF32CuDNNESt8optionalINS_9Float32OpEE";

// at::Float32Op
enum class Float32Op : int { all, convolution };

}  // namespace

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

}  // namespace tidemark::phantom
