#include "analyze/ledger/memory_owner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "store/symbols.h"

namespace tidemark {
namespace {

constexpr const char* kTorchAllocatorName = "PyTorch's allocator";

using Known = std::pair<std::string_view, const char*>;

// By the file's name before ".so".
constexpr std::array kKnownLibraries = {
    Known{"libc10_cuda", kTorchAllocatorName},
    Known{"libc10", "PyTorch"},
    Known{"libcublas", "cuBLAS"},
    Known{"libcublasLt", "cuBLAS"},
    Known{"libcufft", "cuFFT"},
    Known{"libcufile", "cuFile"},
    Known{"libcurand", "cuRAND"},
    Known{"libcusolver", "cuSOLVER"},
    Known{"libcusolverMg", "cuSOLVER"},
    Known{"libcusparse", "cuSPARSE"},
    Known{"libcusparseLt", "cuSPARSELt"},
    Known{"libcutensor", "cuTENSOR"},
    Known{"libnccl", "NCCL"},
    Known{"libnvinfer", "TensorRT"},
    Known{"libnvjpeg", "nvJPEG"},
    Known{"libnvshmem_host", "NVSHMEM"},
};

// Libraries that are several files.
constexpr std::array kFamilies = {
    Known{"libcudnn", "cuDNN"},
    Known{"libtorch", "PyTorch"},
};

// The hash that repaired wheels append to names of libraries: "libcudart-9335f6a2.so.12".
std::string_view without_hash(std::string_view stem) {
  constexpr std::size_t kDigits = 8;
  if (stem.size() < kDigits + 2 || stem[stem.size() - kDigits - 1] != '-') return stem;
  const std::string_view hash = stem.substr(stem.size() - kDigits);
  if (hash.find_first_not_of("0123456789abcdef") != std::string_view::npos) return stem;
  return stem.substr(0, stem.size() - kDigits - 1);
}

// "libnccl" of "/usr/lib/libnccl.so.2".
std::string_view file_stem(std::string_view path) {
  const std::string_view file = base_name(path);
  for (std::size_t at = file.find(".so"); at != std::string_view::npos; at = file.find(".so", at + 1)) {
    const std::string_view rest = file.substr(at + 3);
    if (at == 0 || !(rest.empty() || rest.front() == '.')) continue;
    const std::string_view stem = file.substr(0, at);
    return without_hash(stem.substr(0, stem.find(".cpython-")));  // of Python's extension modules
  }
  return file;
}

}  // namespace

std::string library_name(std::string_view path) {
  const std::string_view stem = file_stem(path);
  for (const auto& [file, name] : kKnownLibraries) {
    if (stem == file) return name;
  }
  for (const auto& [file, name] : kFamilies) {
    if (stem == file || (stem.starts_with(file) && stem[file.size()] == '_')) return name;
  }
  return std::string(stem);
}

bool passes_calls_on(std::string_view path) {
  constexpr std::array<std::string_view, 4> kPlumbing = {"libcuda", "libcudart", "libcupti", "libtidemark_preload"};
  return std::find(kPlumbing.begin(), kPlumbing.end(), file_stem(path)) != kPlumbing.end();
}

MemoryOwners::MemoryOwners(const Definitions& definitions)
    : definitions_(definitions), names_{kTorchAllocatorName}, by_name_{{kTorchAllocatorName, kTorchAllocator}} {}

std::string MemoryOwners::find(StackId stack) const {
  while (stack.value < definitions_.stacks.size()) {
    const StackNode& node = definitions_.stacks[stack.value];
    if (node.location.value < definitions_.locations.size()) {
      const Location& location = definitions_.locations[node.location.value];
      if (location.kind == Location::Kind::native && location.module.value < definitions_.modules.size()) {
        const StringId path = definitions_.modules[location.module.value].path;
        if (path.value < definitions_.strings.size() && !passes_calls_on(definitions_.strings[path.value])) {
          return library_name(definitions_.strings[path.value]);
        }
      }
    }
    if (node.parent.valid() && node.parent.value >= stack.value) break;  // would not end
    stack = node.parent;
  }
  return "unknown caller";
}

std::size_t MemoryOwners::of(StackId stack) {
  const auto [known, is_new] = by_stack_.try_emplace(stack.value, 0);
  if (is_new) {
    const std::string name = find(stack);
    const auto [owner, is_new_name] = by_name_.try_emplace(name, names_.size());
    if (is_new_name) names_.push_back(name);
    known->second = owner->second;
  }
  return known->second;
}

}  // namespace tidemark
