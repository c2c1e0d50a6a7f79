// Cubins: ELF files of code for one GPU, with what each kernel needs of a multiprocessor.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tidemark::phantom {

/// What the compiler noted of a kernel.
struct KernelNeeds {
  int registers = 0;             ///< of each thread
  int launch_bound = 0;          ///< most threads of a block (__launch_bounds__); 0: none given
  int barriers = 0;              ///< of a block (bar.sync)
  std::size_t shared_bytes = 0;  ///< static shared memory of a block, without what the driver keeps
  std::size_t local_bytes = 0;   ///< of each thread
  std::size_t code_bytes = 0;
  bool prints = false;  ///< calls assert() or printf(), which are the driver's
};

struct Cubin {
  int binary_version = 0;          ///< 90 for code of compute capability 9.0
  int ptx_version = 0;             ///< 80 for code that was compiled from PTX for compute capability 8.0
  std::size_t constant_bytes = 0;  ///< of the program's own variables in constant memory
  bool prints = false;             ///< some kernel does
  std::unordered_map<std::string, KernelNeeds> kernels;  ///< by their names in the file
};

/// Reads a cubin of CUDA 11 or newer; of anything else, what is found of it.
[[nodiscard]] Cubin read_cubin(std::string_view file);

}  // namespace tidemark::phantom
