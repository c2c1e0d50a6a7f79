// NVRTC: code compiled by a program at run time. Nothing runs it, so nothing is compiled: any source is accepted.
#include <cstdlib>
#include <cstring>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {
namespace {

constexpr int kNvrtcSuccess = 0;

// The argument for cuModuleLoadData: text, as PTX is, without known kernels.
constexpr char kCode[] = "// not compiled";

// PyTorch caches code compiled by NVRTC in a folder of the user, for programs that have a device.
__attribute__((constructor)) void keep_kernel_cache_clean() {
  setenv("USE_PYTORCH_KERNEL_CACHE", "0", 1);
}

}  // namespace

TIDEMARK_PHANTOM_API int nvrtcVersion(int* major, int* minor) {
  *major = profile().cuda_version / 1000;
  *minor = profile().cuda_version % 1000 / 10;
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API const char* nvrtcGetErrorString(int result) {
  return result == kNvrtcSuccess ? "NVRTC_SUCCESS" : "a call without an answer of the phantom GPU";
}
TIDEMARK_PHANTOM_API int nvrtcCreateProgram(Handle* program, const char*, const char*, int, const char* const*,
                                            const char* const*) {
  *program = new_handle();
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcDestroyProgram(Handle* program) {
  *program = nullptr;
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcAddNameExpression(Handle, const char*) {
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcCompileProgram(Handle, int, const char* const*) {
  return kNvrtcSuccess;
}
// Names are passed to cuModuleGetFunction, which has a function for every name.
TIDEMARK_PHANTOM_API int nvrtcGetLoweredName(Handle, const char* name, const char** lowered) {
  *lowered = name;
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcGetPTXSize(Handle, std::size_t* bytes) {
  *bytes = sizeof kCode;
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcGetPTX(Handle, char* code) {
  std::memcpy(code, kCode, sizeof kCode);
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcGetCUBINSize(Handle, std::size_t* bytes) {
  *bytes = sizeof kCode;
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcGetCUBIN(Handle program, char* code) {
  return nvrtcGetPTX(program, code);
}
TIDEMARK_PHANTOM_API int nvrtcGetProgramLogSize(Handle, std::size_t* bytes) {
  *bytes = 1;
  return kNvrtcSuccess;
}
TIDEMARK_PHANTOM_API int nvrtcGetProgramLog(Handle, char* log) {
  *log = '\0';
  return kNvrtcSuccess;
}

}  // namespace tidemark::phantom
