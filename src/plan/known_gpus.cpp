#include "plan/gpu_profiles.h"

namespace tidemark {
namespace {

// Total memory as reported by the driver: for the H200 and the H100 measured with driver 580; for the others as printed
// by deviceQuery or torch.cuda.get_device_properties() in public reports, with the driver's version of CUDA. Drivers
// differ by up to 1%; PyTorch's out-of-memory errors contain the same figure as "total capacity". Multiprocessors,
// caches and buses: the same reports and NVIDIA's white papers of the architectures.
constexpr std::string_view kKnownGpus = R"(
[T4]
name = Tesla T4
memory = 15095MiB  # torch of 2026; 15102 with 12.2, 15110 with 11.0
compute_capability = 7.5
multiprocessors = 40
l2_cache = 4MiB
memory_bus_bits = 256

[V100-16GB]
name = Tesla V100-SXM2-16GB
memory = 16928342016  # 12.4; 16945512448 with 9.0
compute_capability = 7.0
multiprocessors = 80
l2_cache = 6MiB
memory_bus_bits = 4096

[V100-32GB]
name = Tesla V100-SXM2-32GB
memory = 34072559616  # 12.9; 34089730048 with 11.4
compute_capability = 7.0
multiprocessors = 80
l2_cache = 6MiB
memory_bus_bits = 4096

[A10]
name = NVIDIA A10
memory = 23696375808  # 12.8; 23609475072 with 12.2
compute_capability = 8.6
multiprocessors = 72
l2_cache = 6MiB
memory_bus_bits = 384

[A10G]
name = NVIDIA A10G
memory = 22587MiB  # torch of 2026; the 22.06 GiB of many errors
compute_capability = 8.6
multiprocessors = 80
l2_cache = 6MiB
memory_bus_bits = 384

[A40]
name = NVIDIA A40
memory = 47608692736  # 12.4
compute_capability = 8.6
multiprocessors = 84
l2_cache = 6MiB
memory_bus_bits = 384

[A6000]
name = NVIDIA RTX A6000
memory = 48676MiB  # torch of 2024; 51160023040 with 12.7
compute_capability = 8.6
multiprocessors = 84
l2_cache = 6MiB
memory_bus_bits = 384

[L4]
name = NVIDIA L4
memory = 23612293120  # 12.0
compute_capability = 8.9
multiprocessors = 58
l2_cache = 48MiB
memory_bus_bits = 192

[L40S]
name = NVIDIA L40S
memory = 47576711168  # 12.4; up to 45589 MiB
compute_capability = 8.9
multiprocessors = 142
l2_cache = 96MiB
memory_bus_bits = 384

[A100-40GB]
name = NVIDIA A100-SXM4-40GB
memory = 42298834944  # deviceQuery
compute_capability = 8.0
multiprocessors = 108
l2_cache = 40MiB
memory_bus_bits = 5120

[A100-80GB]
name = NVIDIA A100-SXM4-80GB
memory = 85100068864  # 12.5; 84987740160 with 12.2
compute_capability = 8.0
multiprocessors = 108
l2_cache = 40MiB
memory_bus_bits = 5120

[H100-80GB]
name = NVIDIA H100 80GB HBM3
memory = 85017493504  # 13.0 with driver 580.159; 85028896768 with 12.8, 85045477376 with 12.7
context = 648871936
compute_capability = 9.0
multiprocessors = 132
l2_cache = 50MiB
memory_bus_bits = 5120
measured = yes

[H100-PCIe]
name = NVIDIA H100 PCIe
memory = 81008MiB  # torch of 2023
compute_capability = 9.0
multiprocessors = 114
l2_cache = 50MiB
memory_bus_bits = 5120

[H200]
name = NVIDIA H200
memory = 150109880320
context = 648871936
compute_capability = 9.0
multiprocessors = 132
l2_cache = 60MiB
memory_bus_bits = 6016
measured = yes

[B200]
name = NVIDIA B200
memory = 182631MiB  # torch of 2025; up to 182642
compute_capability = 10.0
multiprocessors = 148
l2_cache = 126.5MiB
memory_bus_bits = 7680  # 8192 with drivers before 2026

[RTX-2080-Ti]
name = NVIDIA GeForce RTX 2080 Ti
memory = 11348672512  # 12.8; 11554717696 with 11.5
compute_capability = 7.5
multiprocessors = 68
l2_cache = 5632KiB
memory_bus_bits = 352

[RTX-3060]
name = NVIDIA GeForce RTX 3060
memory = 11901MiB  # 13.0; 12004 with 12.4, 12044 with 12.2
compute_capability = 8.6
multiprocessors = 28
l2_cache = 2304KiB
memory_bus_bits = 192

[RTX-3090]
name = NVIDIA GeForce RTX 3090
memory = 25414860800  # 12.1; 25447170048 with 11.8
compute_capability = 8.6
multiprocessors = 82
l2_cache = 6MiB
memory_bus_bits = 384

[RTX-4080]
name = NVIDIA GeForce RTX 4080
memory = 16049MiB  # torch of 2023
compute_capability = 8.9
multiprocessors = 76
l2_cache = 64MiB
memory_bus_bits = 256

[RTX-4090]
name = NVIDIA GeForce RTX 4090
memory = 25250627584  # 13.0; up to 24207 MiB
compute_capability = 8.9
multiprocessors = 128
l2_cache = 72MiB
memory_bus_bits = 384

[RTX-5090]
name = NVIDIA GeForce RTX 5090
memory = 33660534784  # 13.0; up to 33677180928
compute_capability = 12.0
multiprocessors = 170
l2_cache = 96MiB
memory_bus_bits = 512

[RTX-PRO-6000]
name = NVIDIA RTX PRO 6000 Blackwell Server Edition
memory = 97250MiB  # torch of 2025; the 94.97 GiB of many errors
compute_capability = 12.0
multiprocessors = 188
l2_cache = 128MiB
memory_bus_bits = 512
)";

}  // namespace

std::string_view known_gpus_text() {
  return kKnownGpus;
}

}  // namespace tidemark
