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

// With the cuSOLVER of CUDA 13.0 on an H200, by what torch.linalg allocated there for square matrices of 20 sizes from
// 16 to 8192, in float32, float64 and complex64 (scripts/measure_libraries.py). The formulas were read from 10 of the
// sizes; how they do for the others says docs/phantom-gpu.md.

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

}  // namespace tidemark::phantom
