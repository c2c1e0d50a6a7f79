// Machine code of kernels: fat binaries, which contain code for several GPUs, and cubins, the ELF files in them.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tidemark::phantom {

/// The `size` bytes at `offset`; empty if they are not all there.
[[nodiscard]] inline std::string_view bytes_at(std::string_view bytes, std::size_t offset, std::size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.substr(offset, size);
}

/// The record at `offset`, which may be unaligned; std::nullopt if it is incomplete.
template <typename Record>
[[nodiscard]] std::optional<Record> record_at(std::string_view bytes, std::size_t offset) {
  const std::string_view found = bytes_at(bytes, offset, sizeof(Record));
  if (found.empty()) return std::nullopt;
  Record record;
  std::memcpy(&record, found.data(), sizeof record);
  return record;
}

/// Code for one GPU.
struct DeviceCode {
  int architecture = 0;  ///< 90 for compute capability 9.0
  std::string cubin;     ///< an ELF file; empty for PTX, which the driver would compile at load time
};

/// The code that the driver would load on a GPU of compute capability `major`.`minor`: a cubin of the same major and
/// the highest minor that is not above, one for exactly this GPU (sm_90a) or its family (sm_100f) before one of the
/// same number, else the newest PTX. `image` is the argument of __cudaRegisterFatBinary or cuModuleLoadData: a fat
/// binary, or a cubin, which is returned for any GPU. std::nullopt if there is no such code. Thread-safe.
[[nodiscard]] std::optional<DeviceCode> choose_code(const void* image, int major, int minor);

/// Decompresses one LZ4 block, which NVIDIA's compiler used for machine code by default until CUDA 12. `size`: its
/// decompressed size. std::nullopt if it is not such a block.
[[nodiscard]] std::optional<std::string> decompress_lz4(std::string_view block, std::size_t size);

/// Properties of a kernel recorded by the compiler.
struct KernelNeeds {
  int registers = 0;             ///< for each thread
  int launch_bound = 0;          ///< most threads of a block (__launch_bounds__); 0: unspecified
  int barriers = 0;              ///< for a block (bar.sync)
  std::size_t shared_bytes = 0;  ///< static shared memory of a block, without the driver's part
  std::size_t local_bytes = 0;   ///< for each thread
  std::size_t code_bytes = 0;
  bool prints = false;  ///< calls assert() or printf(), which the driver provides
};

struct Cubin {
  int binary_version = 0;          ///< 90 for code of compute capability 9.0
  int ptx_version = 0;             ///< 80 for code that was compiled from PTX for compute capability 8.0
  std::size_t constant_bytes = 0;  ///< the program's own variables in constant memory
  bool prints = false;             ///< whether any kernel does
  std::unordered_map<std::string, KernelNeeds> kernels;  ///< by their names in the file
};

/// Reads a cubin of CUDA 11 or newer; from other files, the parts that are found.
[[nodiscard]] Cubin read_cubin(std::string_view file);

}  // namespace tidemark::phantom
