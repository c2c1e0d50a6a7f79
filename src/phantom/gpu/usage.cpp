#include "phantom/gpu/usage.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/handles.h"

namespace tidemark::phantom {
namespace {

std::atomic<std::uint64_t> reads;

// The status that a library's callers take for "this failed".
int failure_of(const char* function) {
  struct Library {
    const char* prefix;
    int status;
  };
  // cuSPARSELt before cuSPARSE, cuBLASLt is as cuBLAS; whatever is left is the driver's or the runtime's.
  constexpr Library kLibraries[] = {{"cublas", 15 /* CUBLAS_STATUS_NOT_SUPPORTED */},
                                    {"cudnn", 3000 /* CUDNN_STATUS_NOT_SUPPORTED */},
                                    {"cusparse", 10 /* CUSPARSE_STATUS_NOT_SUPPORTED */},
                                    {"cusolver", 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */},
                                    {"cufft", 16 /* CUFFT_NOT_SUPPORTED */},
                                    {"nvrtc", 11 /* NVRTC_ERROR_INTERNAL_ERROR */},
                                    {"nccl", 3 /* ncclInternalError */},
                                    {"pnccl", 3},
                                    {"nvml", 3 /* NVML_ERROR_NOT_SUPPORTED */},
                                    {"cupti", 15 /* CUPTI_ERROR_NOT_INITIALIZED */},
                                    {"nvshmem", 7}};
  for (const Library& library : kLibraries)
    if (std::strncmp(function, library.prefix, std::strlen(library.prefix)) == 0) return library.status;
  return kNotSupported;
}

// nvrtcGetErrorString, cusparseGetErrorName. The driver's own write it to where an argument points, and have answers.
bool returns_text(std::string_view function) {
  return function.ends_with("GetErrorString") || function.ends_with("GetErrorName");
}

}  // namespace

void count_read(std::size_t /*bytes*/) {
  reads.fetch_add(1, std::memory_order_relaxed);
}

void count_unanswered(const char* function) {
  static std::mutex mutex;
  static auto* const kSeen = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (!kSeen->insert(function).second) return;
  std::fprintf(stderr, "tidemark: the phantom GPU has no answer for %s; the call fails\n", function);
}

/// What the stand-ins call for every function without an answer: says its name, returns its library's status for
/// failure. A function that returns the text of a status returns one.
TIDEMARK_PHANTOM_API std::intptr_t tidemark_phantom_unanswered(const char* function) {
  if (returns_text(function)) return reinterpret_cast<std::intptr_t>("a call without an answer of the phantom GPU");
  count_unanswered(function);
  return failure_of(function);
}

/// What the stand-ins call for functions that create an object: writes a handle that no other object has.
TIDEMARK_PHANTOM_API int tidemark_phantom_create_handle(Handle* handle) {
  *handle = new_handle();
  return kSuccess;
}

}  // namespace tidemark::phantom
