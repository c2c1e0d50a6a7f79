#include "plan/gpu_profiles.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>

#include "base/units.h"

namespace tidemark {
namespace {

// Totals: H200 measured with driver 580. A100-40GB and RTX 5090 as deviceQuery prints them. The others as PyTorch's
// out-of-memory errors name them, with two digits behind the point: T4, V100, L40S, A100-80GB, RTX 3090 and 4090 found
// in public reports; A10, L4, H100 and B200 still without one. Multiprocessors, caches and buses: NVIDIA's white papers
// of the architectures.
constexpr std::uint64_t gib_hundredths(std::uint64_t hundredths) {
  return (hundredths << 30) / 100 >> 20 << 20;
}

constexpr std::array kProfiles = {
    GpuProfile{"T4", "Tesla T4", gib_hundredths(1456), {}, 7, 5, 40, 4 * kMiB, 256},
    GpuProfile{"V100-16GB", "Tesla V100-SXM2-16GB", gib_hundredths(1578), {}, 7, 0, 80, 6 * kMiB, 4096},
    GpuProfile{"V100-32GB", "Tesla V100-SXM2-32GB", gib_hundredths(3174), {}, 7, 0, 80, 6 * kMiB, 4096},
    GpuProfile{"A10", "NVIDIA A10", gib_hundredths(2206), {}, 8, 6, 72, 6 * kMiB, 384},
    GpuProfile{"L4", "NVIDIA L4", gib_hundredths(2203), {}, 8, 9, 58, 48 * kMiB, 192},
    GpuProfile{"L40S", "NVIDIA L40S", gib_hundredths(4453), {}, 8, 9, 142, 96 * kMiB, 384},
    GpuProfile{"A100-40GB", "NVIDIA A100-SXM4-40GB", 42'298'834'944, {}, 8, 0, 108, 40 * kMiB, 5120},
    GpuProfile{"A100-80GB", "NVIDIA A100-SXM4-80GB", gib_hundredths(7915), {}, 8, 0, 108, 40 * kMiB, 5120},
    GpuProfile{"H100-80GB", "NVIDIA H100 80GB HBM3", gib_hundredths(7910), {}, 9, 0, 132, 50 * kMiB, 5120},
    GpuProfile{"H200", "NVIDIA H200", 150'109'880'320, 648'871'936, 9, 0, 132, 60 * kMiB, 6016, true},
    GpuProfile{"B200", "NVIDIA B200", gib_hundredths(17835), {}, 10, 0, 148, 126 * kMiB, 8192},
    GpuProfile{"RTX-3090", "NVIDIA GeForce RTX 3090", gib_hundredths(2370), {}, 8, 6, 82, 6 * kMiB, 384},
    GpuProfile{"RTX-4090", "NVIDIA GeForce RTX 4090", gib_hundredths(2364), {}, 8, 9, 128, 72 * kMiB, 384},
    GpuProfile{"RTX-5090", "NVIDIA GeForce RTX 5090", 33'677'180'928, {}, 12, 0, 170, 96 * kMiB, 512},
};

bool same(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace

std::span<const GpuProfile> gpu_profiles() {
  return kProfiles;
}

Result<GpuProfile> find_gpu_profile(std::string_view name) {
  std::string names;
  for (const GpuProfile& gpu : kProfiles) {
    if (same(gpu.name, name) || same(gpu.full_name, name)) return gpu;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", gpu.name);
  }
  return Error{fmt::format("--gpu {}: no such GPU is known; known are {}", name, names)};
}

MultiprocessorLimits limits_of(const GpuProfile& gpu) {
  switch (gpu.major * 10 + gpu.minor) {
    case 70:
      return {98'304, 98'304, 2048, 32};
    case 75:
      return {65'536, 65'536, 1024, 16};
    case 80:
      return {167'936, 166'912, 2048, 32};
    case 86:
      return {102'400, 101'376, 1536, 16};
    case 89:
    case 120:
      return {102'400, 101'376, 1536, 24};
    default:
      return {233'472, 232'448, 2048, 32};  // 9.0 and 10.0
  }
}

}  // namespace tidemark
