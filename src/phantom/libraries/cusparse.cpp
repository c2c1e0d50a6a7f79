// cuSPARSE: descriptors of matrices, and the buffers that PyTorch allocates for products, solutions and sums.
//
// The sizes are formulas for cuSPARSE of CUDA 13.0 on an H200; docs/phantom-gpu.md describes the measurements. A
// product or a sum of two sparse matrices depends on the places of their nonzeros, which the phantom GPU does not
// compute: it assumes that they are distributed evenly and independently.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"

namespace tidemark::phantom {

namespace {

struct SparseMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t nonzeros = 0;
  int type = 0;  ///< cudaDataType of the values
};

/// A vector is one column.
struct DenseMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 1;
};

// cudaDataType
constexpr int kFloat32 = 0;
constexpr int kFloat64 = 1;
constexpr int kFloat16 = 2;

std::int64_t value_bytes(int type) {
  switch (type) {
    case kFloat16:
    case 14:  // CUDA_R_16BF
      return 2;
    case kFloat64:
    case 4:  // CUDA_C_32F
      return 8;
    case 5:  // CUDA_C_64F
      return 16;
    default:
      return 4;
  }
}

bool is_measured_type(int type) {
  return type == kFloat32 || type == kFloat64 || type == kFloat16;
}

std::string name_of(const char* operation, const SparseMatrix& matrix) {
  return std::string(operation) + " of " + std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns) +
         " with " + std::to_string(matrix.nonzeros) + " nonzeros";
}

int answer(const char* operation, const SparseMatrix& matrix, std::int64_t bytes, bool measured, std::size_t* size) {
  if (!measured || !is_measured_type(matrix.type) || !is_measured_cuda_libraries())
    count_estimate(Estimate::cusparse_workspace, name_of(operation, matrix));
  *size = static_cast<std::size_t>(bytes);
  return 0;
}

// Groups of so many nonzeros, beyond the first.
std::int64_t groups_after_first(std::int64_t nonzeros, std::int64_t group) {
  return nonzeros > 0 ? (nonzeros - 1) / group : 0;
}
std::int64_t groups(std::int64_t nonzeros, std::int64_t group) {
  return (nonzeros + group - 1) / group;
}

std::int64_t vector_product_bytes(const SparseMatrix& matrix) {
  if (value_bytes(matrix.type) == 2) return 4 * matrix.rows + 150 + 8 * (matrix.nonzeros / 896);
  return 15 + 8 * groups(matrix.nonzeros, 3072);
}

// A solution for several right-hand sides.
std::int64_t solution_bytes(const SparseMatrix& matrix, std::int64_t columns) {
  const std::int64_t value = value_bytes(matrix.type);
  return matrix.rows * (columns * value + 8 * groups(columns, 32) + 44 + value) +
         8 * std::max<std::int64_t>(matrix.rows, 127) + (8 + value) * matrix.nonzeros + 258;
}

// The product of dense matrices at the places of a sparse one: some are computed as a whole. `inner` is the size that
// the product sums over.
bool is_whole_product(const SparseMatrix& places, std::int64_t inner) {
  return places.rows > 128 && inner > 128 && 5 * places.nonzeros > places.rows * places.columns;
}
bool is_measured_product(const SparseMatrix& places, std::int64_t inner) {
  const bool narrow = places.rows <= 128 || inner <= 104 || 100 * places.nonzeros <= 15 * places.rows * places.columns;
  const bool wide = places.rows >= 179 && inner >= 162 && 100 * places.nonzeros >= 22 * places.rows * places.columns;
  return narrow || wide;
}

// Different places of `terms` places in the matrix that are drawn at random.
std::int64_t different_places(double terms, std::int64_t rows, std::int64_t columns) {
  const double all = static_cast<double>(rows) * static_cast<double>(columns);
  return all == 0 ? 0 : std::llround(all * -std::expm1(-terms / all));
}

// Multiplications of nonzeros.
double multiplications(const SparseMatrix& left, const SparseMatrix& right) {
  const double inner = static_cast<double>(std::max<std::int64_t>(1, left.columns));
  return static_cast<double>(left.nonzeros) * static_cast<double>(right.nonzeros) / inner;
}

// Equals 191 of 200 measured buffers for the true number of multiplications.
std::int64_t product_bytes(const SparseMatrix& left, double terms) {
  constexpr std::int64_t kManyRows = 512;
  const std::int64_t by_rows = left.rows < kManyRows ? 8 * left.rows + 8 : 16 * left.rows + 752;
  const auto count = static_cast<std::int64_t>(std::llround(terms));
  if (count == 0) return 0;
  return 5159 + (16 + 2 * value_bytes(left.type)) * count + std::max<std::int64_t>(0, by_rows - 4 * count);
}

int create(SparseMatrix** matrix, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros, int type) {
  *matrix = new SparseMatrix{rows, columns, nonzeros, type};
  return 0;
}

constexpr int kRowAlgorithm = 4;       // CUSPARSE_SPMM_CSR_ALG1, for matrices of coordinates
constexpr int kBalancedAlgorithm = 6;  // CUSPARSE_SPMM_CSR_ALG2, for compressed rows

}  // namespace

TIDEMARK_PHANTOM_API const char* cusparseGetErrorString(int) {
  return "status of the phantom GPU";
}

TIDEMARK_PHANTOM_API int cusparseCreateCsr(SparseMatrix** matrix, std::int64_t rows, std::int64_t columns,
                                           std::int64_t nonzeros, void*, void*, void*, int, int, int, int type) {
  return create(matrix, rows, columns, nonzeros, type);
}
TIDEMARK_PHANTOM_API int cusparseCreateCoo(SparseMatrix** matrix, std::int64_t rows, std::int64_t columns,
                                           std::int64_t nonzeros, void*, void*, void*, int, int, int type) {
  return create(matrix, rows, columns, nonzeros, type);
}
TIDEMARK_PHANTOM_API int cusparseDestroySpMat(SparseMatrix* matrix) {
  delete matrix;
  return 0;
}
TIDEMARK_PHANTOM_API int cusparseSpMatGetSize(const SparseMatrix* matrix, std::int64_t* rows, std::int64_t* columns,
                                              std::int64_t* nonzeros) {
  *rows = matrix->rows;
  *columns = matrix->columns;
  *nonzeros = matrix->nonzeros;
  return 0;
}
TIDEMARK_PHANTOM_API int cusparseCreateDnMat(DenseMatrix** matrix, std::int64_t rows, std::int64_t columns,
                                             std::int64_t, void*, int, int) {
  *matrix = new DenseMatrix{rows, columns};
  return 0;
}
TIDEMARK_PHANTOM_API int cusparseDestroyDnMat(DenseMatrix* matrix) {
  delete matrix;
  return 0;
}
TIDEMARK_PHANTOM_API int cusparseCreateDnVec(DenseMatrix** vector, std::int64_t size, void*, int) {
  *vector = new DenseMatrix{size, 1};
  return 0;
}
TIDEMARK_PHANTOM_API int cusparseDestroyDnVec(DenseMatrix* vector) {
  delete vector;
  return 0;
}

TIDEMARK_PHANTOM_API int cusparseSpMM_bufferSize(Handle, int, int, const void*, const SparseMatrix* matrix,
                                                 const DenseMatrix*, const void*, const DenseMatrix*, int,
                                                 int algorithm, std::size_t* bytes) {
  const bool by_rows = algorithm != kBalancedAlgorithm;
  const std::int64_t size =
      by_rows ? 11 + 4 * groups_after_first(matrix->nonzeros, 256) : 15 + 8 * groups_after_first(matrix->nonzeros, 24);
  const bool measured = algorithm == kRowAlgorithm || algorithm == kBalancedAlgorithm;
  return answer("a product with a dense matrix", *matrix, size, measured, bytes);
}
TIDEMARK_PHANTOM_API int cusparseSpMV_bufferSize(Handle, int, const void*, const SparseMatrix* matrix,
                                                 const DenseMatrix*, const void*, const DenseMatrix*, int, int,
                                                 std::size_t* bytes) {
  return answer("a product with a vector", *matrix, vector_product_bytes(*matrix), true, bytes);
}
// A sparse matrix is the result: its places are known.
TIDEMARK_PHANTOM_API int cusparseSDDMM_bufferSize(Handle, int transposed, int, const void*, const DenseMatrix* left,
                                                  const DenseMatrix*, const void*, const SparseMatrix* places, int, int,
                                                  std::size_t* bytes) {
  const std::int64_t inner = transposed == 0 ? left->columns : left->rows;
  const std::int64_t size = is_whole_product(*places, inner) ? 8 * places->rows * places->columns + 7 : 1;
  return answer("a product at the places", *places, size, is_measured_product(*places, inner), bytes);
}
TIDEMARK_PHANTOM_API int cusparseSpSM_bufferSize(Handle, int, int, const void*, const SparseMatrix* matrix,
                                                 const DenseMatrix*, const DenseMatrix* solution, int, int, Handle,
                                                 std::size_t* bytes) {
  return answer("a solution", *matrix, solution_bytes(*matrix, solution->columns), true, bytes);
}
TIDEMARK_PHANTOM_API int cusparseSpSV_bufferSize(Handle, int, const void*, const SparseMatrix* matrix,
                                                 const DenseMatrix*, const DenseMatrix*, int, int, Handle,
                                                 std::size_t* bytes) {
  return answer("a solution with a vector", *matrix, solution_bytes(*matrix, 1), false, bytes);
}

// Called twice: without a buffer for its size, and with it.
TIDEMARK_PHANTOM_API int cusparseSpGEMM_workEstimation(Handle, int, int, const void*, const SparseMatrix* left,
                                                       const SparseMatrix*, const void*, SparseMatrix*, int, int,
                                                       Handle, std::size_t* bytes, void* buffer) {
  if (buffer != nullptr) return 0;
  constexpr std::int64_t kSorted = 14336;  // nonzeros that are sorted at once
  const std::int64_t size = 12 * left->nonzeros + 1079 + 256 * (left->nonzeros / kSorted);
  return answer("a sparse product", *left, size, true, bytes);
}
TIDEMARK_PHANTOM_API int cusparseSpGEMM_compute(Handle, int, int, const void*, const SparseMatrix* left,
                                                const SparseMatrix* right, const void*, SparseMatrix* product, int, int,
                                                Handle, std::size_t* bytes, void* buffer) {
  const double terms = multiplications(*left, *right);
  product->nonzeros = different_places(terms, left->rows, right->columns);
  if (buffer != nullptr) return 0;
  return answer("a sparse product", *left, product_bytes(*left, terms), false, bytes);
}

// The sum of compressed rows. Its buffer was not measured: the starts of its rows.
// NOLINTBEGIN(bugprone-macro-parentheses): names
#define TIDEMARK_SPARSE_SUM(letter, value_type)                                                                   \
  TIDEMARK_PHANTOM_API int cusparse##letter##csrgeam2_bufferSizeExt(                                              \
      Handle, int rows, int columns, const void*, Handle, int nonzeros, const void*, const int*, const int*,      \
      const void*, Handle, int, const void*, const int*, const int*, Handle, const void*, const int*, const int*, \
      std::size_t* bytes) {                                                                                       \
    return answer("a sum", {rows, columns, nonzeros, value_type}, 4 * (std::int64_t{rows} + 1), false, bytes);    \
  }
TIDEMARK_SPARSE_SUM(S, kFloat32)
TIDEMARK_SPARSE_SUM(D, kFloat64)
TIDEMARK_SPARSE_SUM(C, 4)
TIDEMARK_SPARSE_SUM(Z, 5)
// NOLINTEND(bugprone-macro-parentheses)
TIDEMARK_PHANTOM_API int cusparseXcsrgeam2Nnz(Handle, int rows, int columns, Handle, int left, const int* left_rows,
                                              const int* left_columns, Handle, int right, const int* right_rows,
                                              const int* right_columns, Handle, int*, int* result, void*) {
  const bool same = left_rows == right_rows && left_columns == right_columns;
  const double terms = static_cast<double>(left) + static_cast<double>(right);
  const std::int64_t most = std::min<std::int64_t>(std::int64_t{left} + right, std::numeric_limits<int>::max());
  const std::int64_t estimate =
      std::clamp<std::int64_t>(different_places(terms, rows, columns), std::max(left, right), most);
  *result = same ? left : static_cast<int>(estimate);
  return 0;
}

}  // namespace tidemark::phantom
