#include "phantom/gpu/kernels.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "phantom/gpu/address_space.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {
namespace {

struct FatBinary {
  const void* wrapper;
};

struct Kernel {
  FatBinary* binary;
  const void* host;
  const char* name;  // in the registering library
};

struct Kernels {
  std::mutex mutex;
  std::deque<FatBinary> binaries;
  std::vector<Kernel> kernels;
  std::size_t indexed = 0;                             // kernels that are in the index
  std::unordered_map<const void*, std::size_t> index;  // host function -> place in kernels; filled when first asked
};

thread_local const void* last_launch = nullptr;

Kernels& kernels() {
  static auto* const kKernels = new Kernels;
  return *kKernels;
}

// With the lock held.
const Kernel* find(Kernels& all, const void* host) {
  for (; all.indexed < all.kernels.size(); ++all.indexed) all.index[all.kernels[all.indexed].host] = all.indexed;
  const auto found = all.index.find(host);
  return found == all.index.end() ? nullptr : &all.kernels[found->second];
}

}  // namespace

void note_launch(const void* host) {
  last_launch = host;
}

const char* last_launched_kernel() {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  const Kernel* const kernel = find(all, last_launch);
  return kernel == nullptr ? "" : kernel->name;
}

void** register_fat_binary(const void* wrapper) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  all.binaries.push_back({wrapper});
  return reinterpret_cast<void**>(&all.binaries.back());
}

void register_kernel(void** binary, const void* host, const char* name) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  all.kernels.push_back({reinterpret_cast<FatBinary*>(binary), host, name});
}

FunctionAttributes kernel_attributes(const void*) {
  FunctionAttributes attributes{};
  attributes.max_threads_per_block = 1024;
  attributes.registers = 32;
  attributes.ptx_version = attributes.binary_version = profile().major * 10 + profile().minor;
  attributes.max_dynamic_shared_bytes = profile().shared_per_block_optin;
  return attributes;
}

int blocks_per_multiprocessor(const FunctionAttributes& kernel, int threads, std::size_t shared) {
  const Profile& gpu = profile();
  if (threads <= 0) return 0;
  const int warps = (threads + 31) / 32;
  int blocks = std::min(gpu.blocks_per_multiprocessor, gpu.threads_per_multiprocessor / 32 / warps);
  if (kernel.registers > 0) {
    // Registers are given to warps in pieces of 256, and a multiprocessor has four parts that each hold whole warps.
    const auto per_warp = static_cast<int>(round_up(static_cast<std::size_t>(kernel.registers) * 32, 256));
    const int held = gpu.registers_per_multiprocessor / 4 / per_warp * 4;
    blocks = std::min(blocks, held / warps);
  }
  // Each block takes its shared memory in pieces of 128 bytes, 1 KiB of which the driver keeps from compute capability
  // 8 on.
  const std::size_t kept = gpu.major >= 8 ? 1024 : 0;
  const std::size_t taken = round_up(kernel.shared_bytes + shared + kept, 128);
  if (taken > 0)
    blocks = std::min(blocks, static_cast<int>(static_cast<std::size_t>(gpu.shared_per_multiprocessor) / taken));
  return std::max(blocks, 0);
}

}  // namespace tidemark::phantom
