// cuSOLVER: workspaces of its routines, which NVIDIA does not document. Some were measured (solver_workspace.h); other
// sizes are estimates: the optimal workspace of LAPACK's routines of the same names, in blocks of 64 columns.
// https://www.netlib.org/lapack/explore-html/
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"

namespace tidemark::phantom {

namespace {

/// In device memory.
struct SolverWorkspace {
  std::int64_t bytes = 0;
  bool measured = false;  ///< in the range where it equals the measurements; otherwise an estimate by the same formula
};

/// The element type of a computation.
struct SolverType {
  std::int64_t bytes = 4;
  bool complex = false;
};

// For cuSOLVER of CUDA 13.0 on an H200, from its functions' results there and allocations of torch.linalg
// (scripts/measure_workspaces.py, scripts/measure_libraries.py). docs/phantom-gpu.md describes how they were found and
// their accuracy for held-out sizes.

/// Cholesky decomposition, the lower factor or the upper one.
[[nodiscard]] SolverWorkspace potrf_workspace(std::int64_t n, SolverType type, bool lower);

/// LU decomposition of a matrix of m rows and n columns.
[[nodiscard]] SolverWorkspace getrf_workspace(std::int64_t m, std::int64_t n, SolverType type);

/// LDL decomposition.
[[nodiscard]] SolverWorkspace sytrf_workspace(std::int64_t n, SolverType type);

/// Eigenvalues of a symmetric matrix, with or without vectors: by Jacobi's method, and by divide and conquer.
[[nodiscard]] SolverWorkspace syevj_workspace(std::int64_t n, SolverType type);
[[nodiscard]] SolverWorkspace syevd_workspace(std::int64_t n, SolverType type);

/// The same for several small matrices at once.
[[nodiscard]] SolverWorkspace syev_batched_workspace(std::int64_t n, std::int64_t batch, SolverType type);

/// QR decomposition of a matrix of m rows and n columns, and the first n columns of Q from k reflections.
[[nodiscard]] SolverWorkspace geqrf_workspace(std::int64_t m, std::int64_t n, SolverType type);
[[nodiscard]] SolverWorkspace orgqr_workspace(std::int64_t m, std::int64_t n, std::int64_t k, SolverType type);

/// Singular values of a square matrix by Jacobi's method, with or without vectors; and of any number of matrices of up
/// to 32 rows and columns.
[[nodiscard]] SolverWorkspace gesvdj_workspace(std::int64_t n, SolverType type);
[[nodiscard]] SolverWorkspace gesvdj_batched_workspace(SolverType type);

/// Eigenvalues of any square matrix: within 2 KiB from 600 rows on, an estimate.
[[nodiscard]] SolverWorkspace geev_workspace(std::int64_t n, SolverType type);

constexpr std::int64_t kTile = 32;  // columns and rows computed together
constexpr std::int64_t kSmallest = 16;
constexpr std::int64_t kLargest = 8192;  // largest measured size
constexpr std::int64_t kWide = 16384;    // rows from which QR uses another method

std::int64_t tiles(std::int64_t n) {
  return (n + kTile - 1) / kTile;
}
std::int64_t round_up(std::int64_t bytes, std::int64_t step) {
  return (bytes + step - 1) / step * step;
}
std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}
bool is_measured(std::int64_t n) {
  return kSmallest <= n && n <= kLargest;
}
// Every type but complex128.
bool is_measured(SolverType type) {
  return type.bytes <= 8;
}
// A word for each tile of the matrix.
std::int64_t tile_words(std::int64_t n) {
  return 4 * tiles(n) * tiles(n);
}

SolverWorkspace potrf_workspace(std::int64_t n, SolverType type, bool lower) {
  return {128 + (lower ? round_up(tile_words(n), 32) : 32 * type.bytes), n <= kWide};
}

SolverWorkspace getrf_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  const std::int64_t larger = std::max(m, n);
  // Elsewhere sizes follow unknown rules: up to 2 KiB off.
  constexpr std::int64_t kFewBefore = 1536;
  const std::int64_t until = type.bytes == 4 ? 3072 : 4096;
  const bool known = larger <= 1024 || (kFewBefore <= larger && larger <= until) || larger == 5120 || larger == 8192;
  const std::int64_t power = power_of_two(larger);
  const std::int64_t panel = larger <= kFewBefore ? 8 * std::min<std::int64_t>(power, 512)
                             : type.bytes == 4    ? std::int64_t{8192} * 4 + power * 3 / 2
                                                  : 8192 * type.bytes + power * 2;
  return {round_up(8 * larger, 256) + round_up(std::max(panel, tile_words(larger)), 256) + 256,
          m == n && known && is_measured(n) && is_measured(type)};
}

SolverWorkspace sytrf_workspace(std::int64_t n, SolverType type) {
  constexpr std::int64_t kWideFrom = 4096;
  const std::int64_t block = n < kWideFrom ? 64 : 128;
  const std::int64_t least = type.bytes == 4 ? 98432 : 106624;
  return {std::max(least, type.bytes * (block * n + 64)), n <= kWide && is_measured(type)};
}

SolverWorkspace syevj_workspace(std::int64_t n, SolverType type) {
  constexpr std::int64_t kLimit = 4096;
  const std::int64_t t = tiles(n);
  const std::int64_t elements = n * n + n + 1024 * (t + 1) + t + 4 * t * t;
  return {elements * type.bytes, n < kLimit};
}

SolverWorkspace syevd_workspace(std::int64_t n, SolverType type) {
  const std::int64_t small = 3 * n * n + 768 * n + 65539 + (n <= 32 ? 32 : 64);
  const std::int64_t large = 4 * n * n + 127 * n + 32963;
  // Other sizes are up to 256 bytes off.
  const bool exact = n % kTile == 0 || (n % 16 == 0 && n <= 640);
  return {std::max(small, large) * type.bytes + 128, exact && is_measured(n) && is_measured(type)};
}

SolverWorkspace syev_batched_workspace(std::int64_t n, std::int64_t batch, SolverType type) {
  const std::int64_t elements = batch * (3 * n * n + 767 * n + 65539) + 64;
  return {elements * type.bytes + 128, is_measured(type) && batch % 4 == 0 && batch <= 32 && (n == 16 || n == 32)};
}

SolverWorkspace geqrf_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  return {1024 * std::max<std::int64_t>(768, 512 + n) * type.bytes, m < kWide && n <= kWide};
}

SolverWorkspace orgqr_workspace(std::int64_t m, std::int64_t n, std::int64_t k, SolverType type) {
  const std::int64_t block = std::min<std::int64_t>(k, 128);
  const std::int64_t rest = std::max<std::int64_t>(0, 2 * n * block - 16384);
  return {(33024 + round_up(m * block, 32) + round_up(rest, 32)) * type.bytes, m <= kWide};
}

SolverWorkspace gesvdj_workspace(std::int64_t n, SolverType type) {
  const std::int64_t t = tiles(n);
  const std::int64_t elements = round_up(2 * n * n + n + 2048 * t + 1024 + t + 4 * t * t, 32);
  return {elements * type.bytes, n % 8 == 0 && n <= kWide};
}

SolverWorkspace gesvdj_batched_workspace(SolverType type) {
  return {992 * type.bytes, true};
}

SolverWorkspace geev_workspace(std::int64_t n, SolverType type) {
  const std::int64_t values = type.complex ? 7 : 4;  // of n elements each, half the size
  return {type.bytes * n * n + values * type.bytes * n / (type.complex ? 2 : 1) + 512, false};
}

constexpr std::int64_t kBlock = 64;

SolverType solver_type(int type) {  // cudaDataType
  switch (type) {
    case 1:  // CUDA_R_64F
      return {8, false};
    case 4:  // CUDA_C_32F
      return {8, true};
    case 5:  // CUDA_C_64F
      return {16, true};
    default:
      return {4, false};
  }
}
constexpr SolverType kS = {4, false};
constexpr SolverType kD = {8, false};
constexpr SolverType kC = {8, true};
constexpr SolverType kZ = {16, true};

std::int64_t blocks_of(std::int64_t columns) {
  return columns * kBlock;
}
std::int64_t eigenvalues(std::int64_t n) {
  return 1 + 6 * n + 2 * n * n;
}
std::int64_t singular_values(std::int64_t m, std::int64_t n) {
  const std::int64_t least = std::min(m, n);
  return least * least + 3 * least + (m + n) * kBlock;
}

void count(const char* routine, std::int64_t rows, std::int64_t columns) {
  count_estimate(Estimate::cusolver_workspace,
                 std::string(routine) + " of " + std::to_string(rows) + " x " + std::to_string(columns));
}

int answer(const char* routine, std::int64_t rows, std::int64_t columns, std::int64_t elements, int* result) {
  count(routine, rows, columns);
  *result = static_cast<int>(std::min<std::int64_t>(elements, std::numeric_limits<int>::max()));
  return 0;
}

// The routines with names that begin with X take their type as an argument, and return bytes: of the device and the
// host.
int answer(const char* routine, std::int64_t rows, std::int64_t columns, std::int64_t elements, int type,
           std::size_t* device, std::size_t* host) {
  count(routine, rows, columns);
  *device = static_cast<std::size_t>(elements * solver_type(type).bytes);
  *host = 0;
  return 0;
}

// Routines that were measured.
int answer_measured(const char* routine, std::int64_t rows, std::int64_t columns, SolverWorkspace workspace,
                    std::int64_t unit, int* result) {
  if (!workspace.measured || !is_measured_cuda_libraries()) count(routine, rows, columns);
  const std::int64_t elements = (workspace.bytes + unit - 1) / unit;
  *result = static_cast<int>(std::min<std::int64_t>(elements, std::numeric_limits<int>::max()));
  return 0;
}
// For the routine that takes its type as an argument.
SolverWorkspace geqrf_device_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  SolverWorkspace workspace = geqrf_workspace(m, n, type);
  workspace.bytes += 128;
  return workspace;
}

// Singular values of matrices that are not square: by the rule.
SolverWorkspace jacobi_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  if (m == n) return gesvdj_workspace(n, type);
  return {singular_values(m, n) * type.bytes, false};
}

int answer(const char* routine, std::int64_t rows, std::int64_t columns, SolverWorkspace workspace, std::size_t* device,
           std::size_t* host) {
  if (!workspace.measured || !is_measured_cuda_libraries()) count(routine, rows, columns);
  *device = static_cast<std::size_t>(workspace.bytes);
  *host = 0;
  return 0;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): names and lists of parameters
#define TIDEMARK_SOLVER(type, name, parameters, ...)                        \
  TIDEMARK_PHANTOM_API int cusolverDn##type##name##_bufferSize parameters { \
    return answer(#name, __VA_ARGS__);                                      \
  }
#define TIDEMARK_SOLVER_TYPES(name, parameters, ...) \
  TIDEMARK_SOLVER(S, name, parameters, __VA_ARGS__)  \
  TIDEMARK_SOLVER(D, name, parameters, __VA_ARGS__)  \
  TIDEMARK_SOLVER(C, name, parameters, __VA_ARGS__)  \
  TIDEMARK_SOLVER(Z, name, parameters, __VA_ARGS__)
// Names that differ for complex numbers.
#define TIDEMARK_SOLVER_PAIR(real, complex, parameters, ...) \
  TIDEMARK_SOLVER(S, real, parameters, __VA_ARGS__)          \
  TIDEMARK_SOLVER(D, real, parameters, __VA_ARGS__)          \
  TIDEMARK_SOLVER(C, complex, parameters, __VA_ARGS__)       \
  TIDEMARK_SOLVER(Z, complex, parameters, __VA_ARGS__)

// For these, `type` is the one in the name.
#define TIDEMARK_MEASURED(letter, name, parameters, rows, columns, workspace)  \
  TIDEMARK_PHANTOM_API int cusolverDn##letter##name##_bufferSize parameters {  \
    constexpr SolverType type = k##letter;                                     \
    return answer_measured(#name, rows, columns, workspace, type.bytes, size); \
  }
#define TIDEMARK_MEASURED_TYPES(real, complex, parameters, rows, columns, workspace) \
  TIDEMARK_MEASURED(S, real, parameters, rows, columns, workspace)                   \
  TIDEMARK_MEASURED(D, real, parameters, rows, columns, workspace)                   \
  TIDEMARK_MEASURED(C, complex, parameters, rows, columns, workspace)                \
  TIDEMARK_MEASURED(Z, complex, parameters, rows, columns, workspace)
TIDEMARK_MEASURED_TYPES(getrf, getrf, (Handle, int m, int n, void*, int, int* size), m, n, getrf_workspace(m, n, type))
TIDEMARK_MEASURED_TYPES(sytrf, sytrf, (Handle, int n, void*, int, int* size), n, n, sytrf_workspace(n, type))
TIDEMARK_MEASURED_TYPES(syevj, heevj, (Handle, int, int, int n, const void*, int, const void*, int* size, Handle), n, n,
                        syevj_workspace(n, type))

// side is 0 for the lower factor.
TIDEMARK_MEASURED_TYPES(potrf, potrf, (Handle, int side, int n, void*, int, int* size), n, n,
                        potrf_workspace(n, type, side == 0))
TIDEMARK_MEASURED_TYPES(geqrf, geqrf, (Handle, int m, int n, void*, int, int* size), m, n, geqrf_workspace(m, n, type))
TIDEMARK_MEASURED_TYPES(orgqr, ungqr, (Handle, int m, int n, int k, const void*, int, const void*, int* size), m, n,
                        orgqr_workspace(m, n, k, type))
TIDEMARK_MEASURED_TYPES(gesvdj, gesvdj,
                        (Handle, int, int, int m, int n, const void*, int, const void*, const void*, int, const void*,
                         int, int* size, Handle),
                        m, n, jacobi_workspace(m, n, type))
TIDEMARK_MEASURED_TYPES(gesvdjBatched, gesvdjBatched,
                        (Handle, int, int m, int n, const void*, int, const void*, const void*, int, const void*, int,
                         int* size, Handle, int),
                        m, n, gesvdj_batched_workspace(type))
// side is 0 for the left.
TIDEMARK_SOLVER_PAIR(ormqr, unmqr,
                     (Handle, int side, int, int m, int n, int, const void*, int, const void*, const void*, int,
                      int* size),
                     m, n, blocks_of(side == 0 ? n : m), size)
TIDEMARK_SOLVER_PAIR(syevd, heevd, (Handle, int, int, int n, const void*, int, const void*, int* size), n, n,
                     eigenvalues(n), size)
TIDEMARK_SOLVER_PAIR(syevjBatched, heevjBatched,
                     (Handle, int, int, int n, const void*, int, const void*, int* size, Handle, int batch), n, n,
                     eigenvalues(n) * batch, size)
TIDEMARK_SOLVER_TYPES(gesvd, (Handle, int m, int n, int* size), m, n, singular_values(m, n), size)
TIDEMARK_SOLVER_TYPES(gesvdaStridedBatched,
                      (Handle, int, int, int m, int n, const void*, int, long long, const void*, long long, const void*,
                       int, long long, const void*, int, long long, int* size, int batch),
                      m, n, singular_values(m, n) * batch, size)

TIDEMARK_SOLVER(X, potrf,
                (Handle, Handle, int side, std::int64_t n, int type, const void*, std::int64_t, int,
                 std::size_t* device, std::size_t* host),
                n, n, potrf_workspace(n, solver_type(type), side == 0), device, host)
TIDEMARK_SOLVER(X, geqrf,
                (Handle, Handle, std::int64_t m, std::int64_t n, int type, const void*, std::int64_t, int, const void*,
                 int, std::size_t* device, std::size_t* host),
                m, n, geqrf_device_workspace(m, n, solver_type(type)), device, host)
TIDEMARK_SOLVER(X, syevd,
                (Handle, Handle, int, int, std::int64_t n, int type, const void*, std::int64_t, int, const void*, int,
                 std::size_t* device, std::size_t* host),
                n, n, syevd_workspace(n, solver_type(type)), device, host)
TIDEMARK_SOLVER(X, syevBatched,
                (Handle, Handle, int, int, std::int64_t n, int type, const void*, std::int64_t, int, const void*, int,
                 std::size_t* device, std::size_t* host, std::int64_t batch),
                n, n, syev_batched_workspace(n, batch, solver_type(type)), device, host)
TIDEMARK_SOLVER(X, geev,
                (Handle, Handle, int, int, std::int64_t n, int type, const void*, std::int64_t, int, const void*, int,
                 const void*, std::int64_t, int, const void*, std::int64_t, int, std::size_t* device,
                 std::size_t* host),
                n, n, geev_workspace(n, solver_type(type)), device, host)
TIDEMARK_SOLVER(X, sytrs,
                (Handle, int, std::int64_t n, std::int64_t columns, int type, const void*, std::int64_t,
                 const std::int64_t*, int, const void*, std::int64_t, std::size_t* device, std::size_t* host),
                n, columns, n* columns, type, device, host)
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace tidemark::phantom
