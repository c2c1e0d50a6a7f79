// Memory that NVIDIA's driver and libraries take for themselves at run time: it determines the addresses of the
// program's own memory.
#pragma once

#include <cstddef>
#include <limits>
#include <mutex>
#include <set>
#include <tuple>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {

/// The code of a kernel at its first launch.
struct LoadedKernel {
  std::size_t code_bytes = 0;
  bool prints = false;         ///< calls assert() or printf()
  bool module_prints = false;  ///< a kernel of the same file does
};

/// The properties of a matrix product that determine cuBLAS's kernel.
struct Product {
  bool single = true;  ///< of float32
  bool by_lt = false;  ///< by cuBLASLt
  int transposed = 0;  ///< a number for the transpositions of both factors
  long long rows = 0;  ///< of the result
  long long columns = 0;
  long long depth = std::numeric_limits<long long>::max();
};

/// Takes addresses in the order measured on an H200 with driver 580, cuBLAS 13.0 and cuDNN 9.19: the context, code in
/// pieces of 2 MiB, the stacks of the kernels' threads, a buffer for printf(), and memory of the libraries' handles.
/// Thread-safe.
class DriverMemory {
 public:
  /// Called for device memory that is taken on the calling thread's device. Not called for the context's initial
  /// memory, which is in the profile's context size.
  using Listener = void (*)(std::size_t bytes);

  /// Creates the context.
  explicit DriverMemory(AddressSpace& addresses, Listener listener = nullptr);

  [[nodiscard]] AddressSpace& addresses() { return addresses_; }
  void load_kernel(const LoadedKernel& kernel);
  void multiply(const Product& product);
  void create_cublas_handle();
  void create_cudnn_handle();
  void pin_host_memory();

 private:
  void load_code(std::size_t bytes);
  void* reserve(std::size_t mebibytes);
  void* take(std::size_t mebibytes);
  void share_library_memory();
  void map_host_memory();
  void say(std::size_t bytes) const;

  AddressSpace& addresses_;
  Listener listener_;
  std::mutex mutex_;
  void* stacks_;
  bool moved_stacks_ = false;
  bool printf_buffer_ = false;
  bool library_memory_ = false;  // shared by cuBLAS and cuDNN
  bool host_memory_ = false;
  bool cudnn_loaded_ = false;
  bool code_taken_ = false;
  std::size_t code_left_ = 0;                                   // in the newest piece of code
  std::set<std::tuple<bool, bool, int, bool, bool>> products_;  // products with loaded kernels
};

/// The driver's memory in this process. The first call creates the context.
[[nodiscard]] DriverMemory& driver_memory();

}  // namespace tidemark::phantom
