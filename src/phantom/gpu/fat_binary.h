// Fat binaries: the code of a library's kernels for several GPUs, as the compiler puts it into the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::phantom {

/// Code for one GPU.
struct DeviceCode {
  int architecture = 0;  ///< 90 for compute capability 9.0
  std::string cubin;     ///< an ELF file; empty for PTX, which the driver would compile when it loads it
};

/// The code that the driver would load on a GPU of compute capability `major`.`minor`: a cubin of the same major and
/// the highest minor that is not above, one for exactly this GPU (sm_90a) or its family (sm_100f) before one of the
/// same number, else the newest PTX. `image` is what __cudaRegisterFatBinary or cuModuleLoadData is handed: a fat
/// binary, or a cubin, which is returned for any GPU. None when there is no such code. Thread-safe.
[[nodiscard]] std::optional<DeviceCode> choose_code(const void* image, int major, int minor);

/// Decompresses one LZ4 block, as NVIDIA's compiler packed machine code by default until CUDA 12. `size`: its bytes
/// when decompressed. None for what is not such a block.
[[nodiscard]] std::optional<std::string> decompress_lz4(std::string_view block, std::size_t size);

}  // namespace tidemark::phantom
