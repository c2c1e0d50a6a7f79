// cuBLAS and cuBLASLt. Products are not computed; what a program asks for, it is told.
#include <cstring>

#include "phantom/gpu/address_space.h"
#include "phantom/gpu/handles.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {

// PyTorch keeps a workspace for each handle and stream, so handles must differ.
TIDEMARK_PHANTOM_API int cublasCreate_v2(Handle* handle) {
  *handle = new_handle();
  address_space().move_stacks();
  return 0;
}
TIDEMARK_PHANTOM_API int cublasGetStream_v2(Handle, Handle* stream) {
  *stream = nullptr;
  return 0;
}
TIDEMARK_PHANTOM_API int cublasGetVersion_v2(Handle, int* version) {
  *version = profile().cublas_version;
  return 0;
}
TIDEMARK_PHANTOM_API int cublasGetPointerMode_v2(Handle, int* mode) {
  *mode = 0;
  return 0;
}
TIDEMARK_PHANTOM_API int cublasGetMathMode(Handle, int* mode) {
  *mode = 0;
  return 0;
}
TIDEMARK_PHANTOM_API const char* cublasGetStatusString(int) {
  return "status of the phantom GPU";
}
TIDEMARK_PHANTOM_API std::size_t cublasLtGetVersion() {
  return static_cast<std::size_t>(profile().cublas_version);
}
TIDEMARK_PHANTOM_API std::size_t cublasLtGetCudartVersion() {
  return static_cast<std::size_t>(profile().cuda_version);
}

// cublasLtMatmulHeuristicResult_t: an algorithm that needs no workspace.
struct MatmulResult {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
TIDEMARK_PHANTOM_API int cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle,
                                                        int wanted, MatmulResult* results, int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) {
    std::memset(results, 0, sizeof *results);
    results->waves = 1;
  }
  return 0;
}

// Factorizations of many matrices say on the host which argument was wrong: none.
#define TIDEMARK_BATCHED(type)                                                                                       \
  TIDEMARK_PHANTOM_API int cublas##type##geqrfBatched(Handle, int, int, void*, int, void*, int* wrong, int) {        \
    *wrong = 0;                                                                                                      \
    return 0;                                                                                                        \
  }                                                                                                                  \
  TIDEMARK_PHANTOM_API int cublas##type##gelsBatched(Handle, int, int, int, int, void*, int, void*, int, int* wrong, \
                                                     int*, int) {                                                    \
    *wrong = 0;                                                                                                      \
    return 0;                                                                                                        \
  }
TIDEMARK_BATCHED(S)
TIDEMARK_BATCHED(D)
TIDEMARK_BATCHED(C)
TIDEMARK_BATCHED(Z)

}  // namespace tidemark::phantom
