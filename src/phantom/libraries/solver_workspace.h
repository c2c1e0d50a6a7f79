// The workspaces that routines of cuSOLVER take, as far as they were measured.
#pragma once

#include <cstdint>

namespace tidemark::phantom {

/// Of the device.
struct SolverWorkspace {
  std::int64_t bytes = 0;
  bool measured = false;  ///< in the range where it equals what was measured; otherwise an estimate by the same formula
};

/// Elements as cuSOLVER computes with them.
struct SolverType {
  std::int64_t bytes = 4;
  bool complex = false;
};

// With the cuSOLVER of CUDA 13.0 on an H200, by what its functions answered there and what torch.linalg allocated
// (scripts/measure_workspaces.py, scripts/measure_libraries.py). docs/phantom-gpu.md says how they were found and how
// they do for sizes that were held out.

/// Cholesky decomposition, the lower factor or the upper one.
[[nodiscard]] SolverWorkspace potrf_workspace(std::int64_t n, SolverType type, bool lower);

/// LU decomposition of a matrix of m rows and n columns.
[[nodiscard]] SolverWorkspace getrf_workspace(std::int64_t m, std::int64_t n, SolverType type);

/// LDL decomposition.
[[nodiscard]] SolverWorkspace sytrf_workspace(std::int64_t n, SolverType type);

/// Eigenvalues of a symmetric matrix, with or without vectors: by Jacobi's method, and by dividing.
[[nodiscard]] SolverWorkspace syevj_workspace(std::int64_t n, SolverType type);
[[nodiscard]] SolverWorkspace syevd_workspace(std::int64_t n, SolverType type);

/// The same of several small matrices at once.
[[nodiscard]] SolverWorkspace syev_batched_workspace(std::int64_t n, std::int64_t batch, SolverType type);

/// QR decomposition of a matrix of m rows and n columns, and the first n columns of Q from k reflections.
[[nodiscard]] SolverWorkspace geqrf_workspace(std::int64_t m, std::int64_t n, SolverType type);
[[nodiscard]] SolverWorkspace orgqr_workspace(std::int64_t m, std::int64_t n, std::int64_t k, SolverType type);

/// Singular values of a square matrix by Jacobi's method, with or without vectors; and of matrices of up to 32 rows and
/// columns, however many.
[[nodiscard]] SolverWorkspace gesvdj_workspace(std::int64_t n, SolverType type);
[[nodiscard]] SolverWorkspace gesvdj_batched_workspace(SolverType type);

/// Eigenvalues of any square matrix: within 2 KiB from 600 rows on, an estimate.
[[nodiscard]] SolverWorkspace geev_workspace(std::int64_t n, SolverType type);

}  // namespace tidemark::phantom
