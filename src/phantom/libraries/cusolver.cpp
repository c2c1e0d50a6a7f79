// cuSOLVER: how large a workspace its routines ask for. NVIDIA does not say. Some were measured (solver_workspace.h);
// the sizes of others are estimates: what LAPACK's routines of the same names are best called with, in blocks of 64
// columns. https://www.netlib.org/lapack/explore-html/
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/measured_libraries.h"
#include "phantom/libraries/solver_workspace.h"

namespace tidemark::phantom {
namespace {

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

// The routines whose names begin with X take their type as an argument, and answer in bytes: of the device and the
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
// Of the routine that takes its type as an argument.
SolverWorkspace geqrf_device_workspace(std::int64_t m, std::int64_t n, SolverType type) {
  SolverWorkspace workspace = geqrf_workspace(m, n, type);
  workspace.bytes += 128;
  return workspace;
}

// Singular values of other shapes than square ones: by the rule.
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

// Of these, `type` is the one of the name.
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
