// Kernels: registration, launches that do nothing, attributes and occupancy.
#include "phantom/gpu/kernels.h"

#include <cstring>

#include "phantom/gpu/attributes.h"
#include "phantom/gpu/capture.h"

namespace tidemark::phantom {
namespace {

struct Configuration {
  Dim3 grid;
  Dim3 block;
  std::size_t shared;
  Handle stream;
};

// The compiler pushes and pops around one launch, which may nest through default arguments.
thread_local Configuration configurations[8];
thread_local int depth = 0;

int launch(const void* host, Handle stream) {
  note_launch(host);
  captures().launch(stream);
  return kSuccess;
}

}  // namespace

// The compiler's own names.
// NOLINTBEGIN(bugprone-reserved-identifier)
TIDEMARK_PHANTOM_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, Handle stream) {
  configurations[depth++ & 7] = {grid, block, shared, stream};
  return 0;
}

TIDEMARK_PHANTOM_API int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  const Configuration& configuration = configurations[--depth & 7];
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<Handle*>(stream) = configuration.stream;
  return kSuccess;
}

TIDEMARK_PHANTOM_API void** __cudaRegisterFatBinary(void* wrapper) {
  return register_fat_binary(wrapper);
}
TIDEMARK_PHANTOM_API void __cudaRegisterFatBinaryEnd(void**) {}
TIDEMARK_PHANTOM_API void __cudaUnregisterFatBinary(void**) {}
TIDEMARK_PHANTOM_API char __cudaInitModule(void**) {
  return 1;
}
TIDEMARK_PHANTOM_API void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, void*,
                                                 void*, void*, void*, int*) {
  register_kernel(binary, host, name);
}
TIDEMARK_PHANTOM_API void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
TIDEMARK_PHANTOM_API void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, std::size_t, int, int) {}
TIDEMARK_PHANTOM_API int __cudaGetKernel(Handle* kernel, const void* host) {
  *kernel = const_cast<void*>(host);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGetFuncBySymbol(Handle* function, const void* host) {
  *function = const_cast<void*>(host);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaLaunchKernel(const void* host, Dim3, Dim3, void**, std::size_t, Handle stream) {
  return launch(host, stream);
}
TIDEMARK_PHANTOM_API int __cudaLaunchKernel(Handle kernel, Dim3, Dim3, void**, std::size_t, Handle stream) {
  return launch(kernel, stream);  // the result of __cudaGetKernel is the host function
}
TIDEMARK_PHANTOM_API int cudaLaunchCooperativeKernel(const void* host, Dim3, Dim3, void**, std::size_t, Handle stream) {
  return launch(host, stream);
}
TIDEMARK_PHANTOM_API int cudaLaunchKernelExC(const LaunchConfig* configuration, const void* host, void**) {
  return launch(host, configuration->stream);
}

TIDEMARK_PHANTOM_API int cudaFuncGetAttributes(FunctionAttributes* attributes, const void* host) {
  *attributes = kernel_attributes(host);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaFuncSetAttribute(const void* host, int attribute, int value) {
  if (attribute != 8) return kSuccess;  // cudaFuncAttributeMaxDynamicSharedMemorySize
  return allow_dynamic_shared(host, value) ? kSuccess : report(kInvalidValue);
}
TIDEMARK_PHANTOM_API int cudaFuncSetCacheConfig(const void*, int) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaKernelSetAttributeForDevice(Handle kernel, int attribute, int value, int) {
  return cudaFuncSetAttribute(kernel, attribute, value);
}

TIDEMARK_PHANTOM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads,
                                                                       std::size_t shared) {
  *blocks = blocks_per_multiprocessor(host, threads, shared);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host,
                                                                                int threads, std::size_t shared,
                                                                                unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, shared);
}
TIDEMARK_PHANTOM_API int cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* host, int blocks,
                                                                   int threads) {
  const auto available = available_dynamic_shared(host, blocks, threads);
  *bytes = available.value_or(0);
  return available ? kSuccess : report(kInvalidValue);
}

// NOLINTEND(bugprone-reserved-identifier)

}  // namespace tidemark::phantom
