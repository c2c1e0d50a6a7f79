// The workspaces of cuSOLVER and cuFFT: those that were measured on an H200, and estimates by rules of others.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "unit/phantom/counted.h"

extern "C" {
int cusolverDnSgetrf_bufferSize(void*, int m, int n, void*, int, int* size);
int cusolverDnDgetrf_bufferSize(void*, int m, int n, void*, int, int* size);
int cusolverDnSsytrf_bufferSize(void*, int n, void*, int, int* size);
int cusolverDnCsytrf_bufferSize(void*, int n, void*, int, int* size);
int cusolverDnSsyevj_bufferSize(void*, int, int, int n, const void*, int, const void*, int* size, void*);
int cusolverDnXpotrf_bufferSize(void*, void*, int side, std::int64_t n, int type, const void*, std::int64_t, int,
                                std::size_t* device, std::size_t* host);
int cusolverDnXsyevd_bufferSize(void*, void*, int, int, std::int64_t n, int type, const void*, std::int64_t, int,
                                const void*, int, std::size_t* device, std::size_t* host);
int cusolverDnDsyevd_bufferSize(void*, int, int, int n, const void*, int, const void*, int* size);
int cusolverDnCgeqrf_bufferSize(void*, int m, int n, void*, int, int* size);
int cusolverDnXsyevBatched_bufferSize(void*, void*, int, int, std::int64_t n, int type, const void*, std::int64_t, int,
                                      const void*, int, std::size_t* device, std::size_t* host, std::int64_t batch);
int cusolverDnXgeqrf_bufferSize(void*, void*, std::int64_t m, std::int64_t n, int type, const void*, std::int64_t, int,
                                const void*, int, std::size_t* device, std::size_t* host);
int cufftCreate(int* plan);
int cufftXtMakePlanMany(int plan, int rank, const long long* lengths, const long long*, long long, long long, int,
                        const long long*, long long, long long, int, long long batch, std::size_t* workspace, int type);
}

namespace tidemark::phantom {
namespace {

constexpr int kFloat32 = 0;    // CUDA_R_32F
constexpr int kFloat64 = 1;    // CUDA_R_64F
constexpr int kComplex64 = 4;  // CUDA_C_32F

std::uint64_t estimates() {
  return counted(Estimate::cusolver_workspace);
}

std::size_t potrf(std::int64_t n, int type) {
  std::size_t device = 0;
  std::size_t host = 1;
  EXPECT_EQ(cusolverDnXpotrf_bufferSize(nullptr, nullptr, 0, n, type, nullptr, n, type, &device, &host), 0);
  EXPECT_EQ(host, 0U);
  return device;
}
std::size_t eigenvalues(std::int64_t n, int type, std::int64_t batch = 0) {
  std::size_t device = 0;
  std::size_t host = 1;
  EXPECT_EQ(batch == 0 ? cusolverDnXsyevd_bufferSize(nullptr, nullptr, 1, 0, n, type, nullptr, n, type, nullptr, type,
                                                     &device, &host)
                       : cusolverDnXsyevBatched_bufferSize(nullptr, nullptr, 1, 0, n, type, nullptr, n, type, nullptr,
                                                           type, &device, &host, batch),
            0);
  EXPECT_EQ(host, 0U);
  return device;
}
template <typename Routine>
std::size_t lu(Routine* routine, int n, std::size_t unit) {
  int elements = 0;
  EXPECT_EQ(routine(nullptr, n, n, nullptr, n, &elements), 0);
  return static_cast<std::size_t>(elements) * unit;
}
template <typename Routine>
std::size_t ldl(Routine* routine, int n, std::size_t unit) {
  int elements = 0;
  EXPECT_EQ(routine(nullptr, n, nullptr, n, &elements), 0);
  return static_cast<std::size_t>(elements) * unit;
}
std::size_t jacobi(int n) {
  int elements = 0;
  EXPECT_EQ(cusolverDnSsyevj_bufferSize(nullptr, 1, 0, n, nullptr, n, nullptr, &elements, nullptr), 0);
  return static_cast<std::size_t>(elements) * 4;
}

// What PyTorch 2.11 allocated on an H200 for torch.linalg.cholesky, lu_factor, ldl_factor and eigh.
TEST(Cusolver, WorkspacesAreAsMeasured) {
  const std::uint64_t before = estimates();
  EXPECT_EQ(potrf(16, kFloat32), 160U);
  EXPECT_EQ(potrf(192, kFloat64), 288U);
  EXPECT_EQ(potrf(513, kFloat32), 1312U);
  EXPECT_EQ(potrf(8192, kFloat64), 262272U);
  EXPECT_EQ(lu(cusolverDnSgetrf_bufferSize, 96, 4), 2048U);
  EXPECT_EQ(lu(cusolverDnSgetrf_bufferSize, 513, 4), 8704U);
  EXPECT_EQ(lu(cusolverDnDgetrf_bufferSize, 1536, 8), 21760U);
  EXPECT_EQ(lu(cusolverDnSgetrf_bufferSize, 2048, 4), 52480U);
  EXPECT_EQ(lu(cusolverDnDgetrf_bufferSize, 4096, 8), 106752U);
  EXPECT_EQ(lu(cusolverDnDgetrf_bufferSize, 8192, 8), 327936U);
  EXPECT_EQ(ldl(cusolverDnSsytrf_bufferSize, 256, 4), 98432U);
  EXPECT_EQ(ldl(cusolverDnSsytrf_bufferSize, 513, 4), 131584U);
  EXPECT_EQ(ldl(cusolverDnCsytrf_bufferSize, 192, 8), 106624U);
  EXPECT_EQ(ldl(cusolverDnCsytrf_bufferSize, 8192, 8), 8389120U);
  EXPECT_EQ(jacobi(32), 12436U);
  EXPECT_EQ(jacobi(100), 61152U);
  EXPECT_EQ(jacobi(512), 1124416U);
  EXPECT_EQ(eigenvalues(16, kFloat32), 314636U);
  EXPECT_EQ(eigenvalues(48, kComplex64), 875160U);
  EXPECT_EQ(eigenvalues(768, kFloat32), 9959308U);
  EXPECT_EQ(eigenvalues(8192, kFloat64), 2156070552U);
  EXPECT_EQ(eigenvalues(16, kFloat32, 4), 1257648U);
  EXPECT_EQ(eigenvalues(32, kComplex64, 32), 23848320U);
  EXPECT_EQ(estimates(), before);
}

// Sizes, types and shapes that no call had, or for which a formula does not hold to the byte.
TEST(Cusolver, WhatWasNotMeasuredIsCounted) {
  const std::uint64_t before = estimates();
  EXPECT_NEAR(static_cast<double>(eigenvalues(100, kFloat64)), 1379416, 64);  // measured, and not by the formula
  EXPECT_EQ(estimates(), before + 1);
  static_cast<void>(potrf(64, kComplex64));
  static_cast<void>(lu(cusolverDnSgetrf_bufferSize, 2500, 4));
  static_cast<void>(ldl(cusolverDnSsytrf_bufferSize, 3500, 4));
  static_cast<void>(jacobi(600));
  static_cast<void>(eigenvalues(24, kFloat32, 4));
  EXPECT_EQ(estimates(), before + 6);
  int elements = 0;
  EXPECT_EQ(cusolverDnDgetrf_bufferSize(nullptr, 64, 32, nullptr, 64, &elements), 0);
  EXPECT_EQ(estimates(), before + 7);
}

// LAPACK's dsyevd: LWORK is at least 1 + 6 N + 2 N**2 with vectors; cgeqrf: N NB.
TEST(Cusolver, WorkspacesAreThoseOfLapack) {
  int elements = 0;
  EXPECT_EQ(cusolverDnDsyevd_bufferSize(nullptr, 1, 0, 100, nullptr, 100, nullptr, &elements), 0);
  EXPECT_EQ(elements, 20601);
  EXPECT_EQ(cusolverDnCgeqrf_bufferSize(nullptr, 4096, 100, nullptr, 4096, &elements), 0);
  EXPECT_EQ(elements, 6400);
  EXPECT_EQ(cusolverDnDsyevd_bufferSize(nullptr, 1, 0, 1 << 20, nullptr, 1 << 20, nullptr, &elements), 0);
  EXPECT_EQ(elements, INT32_MAX);  // no number of elements that would be negative
}

// geqrf with the type as an argument: in bytes.
TEST(Cusolver, GenericRoutinesAnswerInBytes) {
  std::size_t device = 0;
  std::size_t host = 1;
  EXPECT_EQ(cusolverDnXgeqrf_bufferSize(nullptr, nullptr, 4096, 100, kFloat64, nullptr, 4096, kFloat64, nullptr,
                                        kFloat64, &device, &host),
            0);
  EXPECT_EQ(device, 6400U * 8);
  EXPECT_EQ(host, 0U);
}

TEST(Cufft, WorkspacesAreWithinWhatNvidiaSays) {
  int first = 0;
  int second = 0;
  EXPECT_EQ(cufftCreate(&first), 0);
  EXPECT_EQ(cufftCreate(&second), 0);
  EXPECT_NE(first, second);
  const auto workspace = [](long long height, long long width) {
    const long long lengths[] = {height, width};
    std::size_t bytes = 0;
    EXPECT_EQ(
        cufftXtMakePlanMany(1, 2, lengths, nullptr, 1, 1, kComplex64, nullptr, 1, 1, kComplex64, 5, &bytes, kComplex64),
        0);
    return bytes;
  };
  EXPECT_EQ(workspace(64, 210), 5U * 64 * 210 * 8);
  EXPECT_EQ(workspace(64, 11), 8U * 5 * 64 * 11 * 8);
}

}  // namespace
}  // namespace tidemark::phantom
