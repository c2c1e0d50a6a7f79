#include "phantom/gpu/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/address_space.h"
#include "phantom/gpu/device_code.h"
#include "phantom/gpu/driver_memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"

namespace tidemark::phantom {

namespace {

struct FatBinary {
  const void* wrapper;         // as registered; unused once the cubin is read
  std::optional<Cubin> cubin;  // for the profile's GPU, without kernels if there is none; read at first use
};

struct Kernel {
  FatBinary* binary;
  const void* host;
  const char* name;  // in the registering library or the cubin, or kept below
};

struct Kernels {
  std::mutex mutex;
  std::deque<FatBinary> binaries;
  std::vector<Kernel> kernels;
  std::size_t indexed = 0;                              // kernels in the index
  std::unordered_map<const void*, std::size_t> index;   // host function -> place in kernels; filled at first use
  std::unordered_map<const void*, int> dynamic_shared;  // limits set by allow_dynamic_shared()
  std::unordered_set<const void*> loaded;               // host functions of launched kernels
  std::unordered_set<std::string> names;                // names of kernels in modules without machine code
};

thread_local const void* last_launch = nullptr;

// glibc gets blocks larger than any freed one from mmap(), and the others from its heap. With NVIDIA's libraries,
// blocks of more than 3 MiB and less than 4 came from mmap() in programs that had loaded PyTorch, which determines
// where host tensors leave holes.
void raise_mmap_threshold() {
  void* volatile block = std::malloc(std::size_t{3} << 20);
  std::free(block);
}

Kernels& kernels() {
  static auto* const kKernels = (raise_mmap_threshold(), new Kernels);
  return *kKernels;
}

// Call it with the lock held.
const Kernel* find(Kernels& all, const void* host) {
  for (; all.indexed < all.kernels.size(); ++all.indexed) all.index[all.kernels[all.indexed].host] = all.indexed;
  const auto found = all.index.find(host);
  return found == all.index.end() ? nullptr : &all.kernels[found->second];
}

Cubin cubin_in(const void* image) {
  const std::optional<DeviceCode> code = choose_code(image, profile().major, profile().minor);
  if (!code) return {};
  Cubin cubin = read_cubin(code->cubin);
  if (code->cubin.empty()) cubin.ptx_version = code->architecture;
  return cubin;
}

// Call it with the lock held.
const Cubin& cubin_of(FatBinary& binary) {
  if (!binary.cubin) binary.cubin = cubin_in(binary.wrapper);
  return *binary.cubin;
}

struct KernelCode {
  KernelNeeds needs{.registers = 32};  // a small kernel
  std::size_t constant_bytes = 0;
  int ptx_version = 0;
  int binary_version = 0;
  int dynamic_shared = 0;  // most bytes of a block
  bool module_prints = false;
};

// Call it with the lock held.
KernelCode code_of(Kernels& all, const void* host) {
  KernelCode code;
  code.ptx_version = code.binary_version = profile().major * 10 + profile().minor;
  bool known = false;
  const Kernel* const kernel = find(all, host);
  if (kernel != nullptr) {
    const Cubin& cubin = cubin_of(*kernel->binary);
    if (cubin.ptx_version != 0) code.ptx_version = cubin.ptx_version;
    if (const auto found = cubin.kernels.find(kernel->name); found != cubin.kernels.end()) {
      code.needs = found->second;
      code.constant_bytes = cubin.constant_bytes;
      code.binary_version = cubin.binary_version;
      known = true;
      code.module_prints = cubin.prints;
    }
  }
  if (!known) count_estimate(Estimate::kernel, kernel == nullptr ? "one that nobody registered" : kernel->name);
  const auto allowed = all.dynamic_shared.find(host);
  code.dynamic_shared = allowed != all.dynamic_shared.end()
                            ? allowed->second
                            : profile().shared_per_block - static_cast<int>(code.needs.shared_bytes);
  return code;
}

KernelCode code_of(const void* host) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  return code_of(all, host);
}

constexpr int kParts = 4;  // of a multiprocessor, each with whole warps

// From Hopper on, a multiprocessor has a limited number of barriers: two for each block on data-centre GPUs, one on
// others.
int blocks_by_barriers(const Profile& gpu, int barriers) {
  if (gpu.major < 9 || barriers <= 0) return gpu.blocks_per_multiprocessor;
  const bool two = gpu.major == 9 || (gpu.major == 10 && gpu.minor != 1);
  return gpu.blocks_per_multiprocessor * (two ? 2 : 1) / barriers;
}

// A block takes a multiple of this from shared memory, plus the driver's part for each block.
std::size_t piece(const Profile& gpu) {
  return gpu.major >= 8 ? 128 : 256;
}
std::size_t kept_by_driver(const Profile& gpu) {
  return gpu.major >= 8 ? 1024 : 0;
}

int blocks_by_shared_memory(const Profile& gpu, std::size_t bytes) {
  const std::size_t taken = round_up(bytes + kept_by_driver(gpu), piece(gpu));
  if (taken == 0) return gpu.blocks_per_multiprocessor;
  return static_cast<int>(static_cast<std::size_t>(gpu.shared_per_multiprocessor) / taken);
}

}  // namespace

void note_launch(const void* host) {
  if (host == last_launch) return;
  last_launch = host;
  KernelCode code;
  {
    Kernels& all = kernels();
    const std::lock_guard lock(all.mutex);
    if (!all.loaded.insert(host).second) return;
    code = code_of(all, host);
  }
  driver_memory().load_kernel({code.needs.code_bytes, code.needs.prints, code.module_prints});
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
  all.binaries.push_back({wrapper, std::nullopt});
  return reinterpret_cast<void**>(&all.binaries.back());
}

void register_kernel(void** binary, const void* host, const char* name) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  all.kernels.push_back({reinterpret_cast<FatBinary*>(binary), host, name});
}

Handle load_module(const void* image) {
  Cubin cubin = cubin_in(image);
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  all.binaries.push_back({nullptr, std::move(cubin)});
  return &all.binaries.back();
}

Handle module_kernel(Handle module, const char* name) {
  auto* const binary = static_cast<FatBinary*>(module);
  const auto& named = binary->cubin->kernels;
  const auto found = named.find(name);
  if (found == named.end() && !named.empty()) return nullptr;
  const Handle kernel = new_handle();
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  const std::string& kept = found == named.end() ? *all.names.insert(name).first : found->first;
  all.kernels.push_back({binary, kernel, kept.c_str()});
  return kernel;
}

FunctionAttributes kernel_attributes(const void* host) {
  const KernelCode kernel = code_of(host);
  FunctionAttributes attributes{};
  attributes.shared_bytes = kernel.needs.shared_bytes;
  attributes.constant_bytes = kernel.constant_bytes;
  attributes.local_bytes = kernel.needs.local_bytes;
  attributes.registers = kernel.needs.registers;
  attributes.max_threads_per_block = std::min(1024, warps_by_registers(profile(), kernel.needs.registers) * 32);
  if (kernel.needs.launch_bound != 0)
    attributes.max_threads_per_block = std::min(attributes.max_threads_per_block, kernel.needs.launch_bound);
  attributes.ptx_version = kernel.ptx_version;
  attributes.binary_version = kernel.binary_version;
  attributes.max_dynamic_shared_bytes = kernel.dynamic_shared;
  attributes.preferred_shared_carveout = -1;  // the driver's choice
  return attributes;
}

bool allow_dynamic_shared(const void* host, int bytes) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  const auto fixed = static_cast<int>(code_of(all, host).needs.shared_bytes);
  if (bytes < 0 || bytes > profile().shared_per_block_optin - fixed) return false;
  all.dynamic_shared[host] = bytes;
  return true;
}

int blocks_per_multiprocessor(const void* host, int threads, std::size_t shared) {
  const KernelCode kernel = code_of(host);
  if (shared > static_cast<std::size_t>(kernel.dynamic_shared)) return 0;
  return blocks_per_multiprocessor(profile(), kernel.needs, threads, shared);
}

std::optional<std::size_t> available_dynamic_shared(const void* host, int blocks, int threads) {
  const KernelCode kernel = code_of(host);
  const auto available = available_dynamic_shared(profile(), kernel.needs, blocks, threads);
  if (!available) return std::nullopt;
  return std::min(*available, static_cast<std::size_t>(kernel.dynamic_shared));
}

int warps_by_registers(const Profile& gpu, int registers) {
  if (registers <= 0) return gpu.threads_per_multiprocessor / 32;
  const auto per_warp = static_cast<int>(round_up(static_cast<std::size_t>(registers) * 32, 256));
  return gpu.registers_per_multiprocessor / kParts / per_warp * kParts;
}

int blocks_per_multiprocessor(const Profile& gpu, const KernelNeeds& kernel, int threads, std::size_t shared) {
  if (threads <= 0 || threads > 1024) return 0;
  const int warps = (threads + 31) / 32;
  const int held = warps_by_registers(gpu, kernel.registers);
  // Whether a block fits is checked with the same number of warps in each part.
  if ((warps + kParts - 1) / kParts * kParts > held && kernel.registers > 0) return 0;
  int blocks = std::min(gpu.blocks_per_multiprocessor, gpu.threads_per_multiprocessor / 32 / warps);
  if (kernel.registers > 0) blocks = std::min(blocks, held / warps);
  blocks = std::min(blocks, blocks_by_barriers(gpu, kernel.barriers));
  return std::min(blocks, blocks_by_shared_memory(gpu, kernel.shared_bytes + shared));
}

std::optional<std::size_t> available_dynamic_shared(const Profile& gpu, const KernelNeeds& kernel, int blocks,
                                                    int threads) {
  if (blocks <= 0 || blocks_per_multiprocessor(gpu, kernel, threads, 0) < blocks) return std::nullopt;
  const auto share = static_cast<std::size_t>(gpu.shared_per_multiprocessor / blocks);
  return share / piece(gpu) * piece(gpu) - kernel.shared_bytes - kept_by_driver(gpu);
}

}  // namespace tidemark::phantom
