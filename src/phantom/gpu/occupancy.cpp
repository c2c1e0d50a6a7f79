#include "phantom/gpu/occupancy.h"

#include <algorithm>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {
namespace {

constexpr int kParts = 4;  // of a multiprocessor, which each hold whole warps

// From Hopper on, the barriers of a multiprocessor are counted: data-centre GPUs have two for each block, others one.
int blocks_by_barriers(const Profile& gpu, int barriers) {
  if (gpu.major < 9 || barriers <= 0) return gpu.blocks_per_multiprocessor;
  const bool two = gpu.major == 9 || (gpu.major == 10 && gpu.minor != 1);
  return gpu.blocks_per_multiprocessor * (two ? 2 : 1) / barriers;
}

// Of shared memory, a block takes whole pieces, and what the driver keeps for each.
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

int warps_by_registers(const Profile& gpu, int registers) {
  if (registers <= 0) return gpu.threads_per_multiprocessor / 32;
  const auto per_warp = static_cast<int>(round_up(static_cast<std::size_t>(registers) * 32, 256));
  return gpu.registers_per_multiprocessor / kParts / per_warp * kParts;
}

int blocks_per_multiprocessor(const Profile& gpu, const KernelNeeds& kernel, int threads, std::size_t shared) {
  if (threads <= 0 || threads > 1024) return 0;
  const int warps = (threads + 31) / 32;
  const int held = warps_by_registers(gpu, kernel.registers);
  // Whether a block fits is asked for the same number of warps in each part.
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
