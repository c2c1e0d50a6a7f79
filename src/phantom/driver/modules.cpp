// The driver's modules and launches, used by Triton and other compilers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"
#include "phantom/gpu/capture.h"
#include "phantom/gpu/kernels.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {
namespace {

constexpr int kFileNotFound = 301;  // CUDA_ERROR_FILE_NOT_FOUND

int launch_function(Handle kernel, Handle stream) {
  note_launch(kernel);
  captures().launch(stream);
  return kSuccess;
}

}  // namespace

TIDEMARK_PHANTOM_API int cuCtxGetCurrent(Handle* context);

TIDEMARK_PHANTOM_API int cuModuleLoadData(Handle* module, const void* image) {
  *module = load_module(image);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuModuleLoad(Handle* module, const char* path) {
  const ScopedFd file(open(path, O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0) return kFileNotFound;
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  std::string image(bytes + sizeof(std::uint64_t), '\0');  // not empty, even for an empty file
  if (read(file.get(), image.data(), bytes) != facts.st_size) return kFileNotFound;
  return cuModuleLoadData(module, image.data());
}
TIDEMARK_PHANTOM_API int cuModuleLoadDataEx(Handle* module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}
TIDEMARK_PHANTOM_API int cuModuleUnload(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  *function = module_kernel(module, name);
  return *function != nullptr ? kSuccess : kNotFound;
}
TIDEMARK_PHANTOM_API int cuFuncGetAttribute(int* value, int attribute, Handle function) {
  const FunctionAttributes attributes = kernel_attributes(function);
  switch (attribute) {  // CUfunction_attribute
    case 0:
      *value = attributes.max_threads_per_block;
      break;
    case 1:
      *value = static_cast<int>(attributes.shared_bytes);
      break;
    case 2:
      *value = static_cast<int>(attributes.constant_bytes);
      break;
    case 3:
      *value = static_cast<int>(attributes.local_bytes);
      break;
    case 4:
      *value = attributes.registers;
      break;
    case 5:
      *value = attributes.ptx_version;
      break;
    case 6:
      *value = attributes.binary_version;
      break;
    case 8:
      *value = attributes.max_dynamic_shared_bytes;
      break;
    default:
      *value = 0;
  }
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuFuncSetAttribute(Handle function, int attribute, int value) {
  if (attribute != 8) return kSuccess;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  return allow_dynamic_shared(function, value) ? kSuccess : kInvalidValue;
}
TIDEMARK_PHANTOM_API int cuFuncSetCacheConfig(Handle, int) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuKernelGetAttribute(int* value, int attribute, Handle kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
TIDEMARK_PHANTOM_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Handle function, int threads,
                                                                     std::size_t shared) {
  *blocks = blocks_per_multiprocessor(function, threads, shared);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuOccupancyMaxActiveClusters(int* clusters, Handle, const LaunchConfig*) {
  *clusters = profile().multiprocessors;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuLaunchKernel(Handle kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, Handle stream, void**, void**) {
  return launch_function(kernel, stream);
}
TIDEMARK_PHANTOM_API int cuLaunchCooperativeKernel(Handle kernel, unsigned, unsigned, unsigned, unsigned, unsigned,
                                                   unsigned, unsigned, Handle stream, void**) {
  return launch_function(kernel, stream);
}
// CUlaunchConfig has six numbers of 32 bits, the dynamic shared memory, and then the stream.
struct DriverLaunchConfig {
  unsigned sizes[6];
  unsigned shared;
  Handle stream;
};
TIDEMARK_PHANTOM_API int cuLaunchKernelEx(const DriverLaunchConfig* configuration, Handle kernel, void**, void**) {
  return launch_function(kernel, configuration->stream);
}

TIDEMARK_PHANTOM_API int cuTensorMapEncodeTiled(void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                                                const unsigned*, const unsigned*, int, int, int, int) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuTensorMapEncodeIm2col(void*, int, unsigned, void*, const std::uint64_t*,
                                                 const std::uint64_t*, const int*, const int*, unsigned, unsigned,
                                                 const unsigned*, int, int, int, int) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuStreamIsCapturing(Handle stream, int* status) {
  *status = captures().of(stream) != nullptr ? 1 : 0;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuStreamGetCtx(Handle, Handle* context) {
  return cuCtxGetCurrent(context);
}
TIDEMARK_PHANTOM_API int cuStreamWriteValue32_v2(Handle, DevicePointer, unsigned, unsigned) {
  return kSuccess;
}
}  // namespace tidemark::phantom
