// cuBLAS and cuBLASLt. Products are not computed; every call succeeds.
#include <cstring>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/driver_memory.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {

// PyTorch keeps a workspace for each handle and stream, so handles must differ.
TIDEMARK_PHANTOM_API int cublasCreate_v2(Handle* handle) {
  *handle = new_handle();
  driver_memory().create_cublas_handle();
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

// Factorizations of many matrices report on the host which argument was wrong: none.
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
// Products, for the code that the driver loads for them.
namespace {

constexpr int kSingle = 0;  // CUDA_R_32F

int multiply(int type, int left, int right, int rows, int columns, int depth) {
  driver_memory().multiply(
      {.single = type == kSingle, .transposed = left * 3 + right, .rows = rows, .columns = columns, .depth = depth});
  return 0;
}

}  // namespace

TIDEMARK_PHANTOM_API int cublasSgemm_v2(Handle, int left, int right, int rows, int columns, int depth) {
  return multiply(kSingle, left, right, rows, columns, depth);
}
TIDEMARK_PHANTOM_API int cublasSgemmStridedBatched(Handle, int left, int right, int rows, int columns, int depth) {
  return multiply(kSingle, left, right, rows, columns, depth);
}
TIDEMARK_PHANTOM_API int cublasGemmEx(Handle, int left, int right, int rows, int columns, int depth, const void*,
                                      const void*, int type) {
  return multiply(type, left, right, rows, columns, depth);
}
TIDEMARK_PHANTOM_API int cublasGemmStridedBatchedEx(Handle, int left, int right, int rows, int columns, int depth,
                                                    const void*, const void*, int type) {
  return multiply(type, left, right, rows, columns, depth);
}

struct MatrixLayout {
  int type;
  std::uint64_t rows;
  std::uint64_t columns;
};
TIDEMARK_PHANTOM_API int cublasLtMatrixLayoutCreate(MatrixLayout** layout, int type, std::uint64_t rows,
                                                    std::uint64_t columns, std::int64_t) {
  *layout = new MatrixLayout{type, rows, columns};
  return 0;
}
TIDEMARK_PHANTOM_API int cublasLtMatrixLayoutDestroy(MatrixLayout* layout) {
  delete layout;
  return 0;
}
TIDEMARK_PHANTOM_API int cublasLtMatmul(Handle, Handle, const void*, const void*, Handle, const void*, Handle,
                                        const void*, const void*, Handle, void*, const MatrixLayout* result) {
  driver_memory().multiply({.single = result->type == kSingle,
                            .by_lt = true,
                            .rows = static_cast<long long>(result->rows),
                            .columns = static_cast<long long>(result->columns)});
  return 0;
}

}  // namespace tidemark::phantom
