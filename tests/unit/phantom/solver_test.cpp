// The workspaces of cuSOLVER and cuFFT: those measured on an H200, and estimates by LAPACK's rules.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

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
int cusolverDnSorgqr_bufferSize(void*, int m, int n, int k, const void*, int, const void*, int* size);
int cusolverDnSgesvdj_bufferSize(void*, int, int, int m, int n, const void*, int, const void*, const void*, int,
                                 const void*, int, int* size, void*);
int cusolverDnSgesvdjBatched_bufferSize(void*, int, int m, int n, const void*, int, const void*, const void*, int,
                                        const void*, int, int* size, void*, int batch);
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

std::size_t qr(std::int64_t m, std::int64_t n, int type) {
  std::size_t device = 0;
  std::size_t host = 1;
  EXPECT_EQ(cusolverDnXgeqrf_bufferSize(nullptr, nullptr, m, n, type, nullptr, m, type, nullptr, type, &device, &host),
            0);
  EXPECT_EQ(host, 0U);
  return device;
}
int singular_values(int m, int n) {
  int elements = 0;
  EXPECT_EQ(cusolverDnSgesvdj_bufferSize(nullptr, 1, 1, m, n, nullptr, m, nullptr, nullptr, m, nullptr, n, &elements,
                                         nullptr),
            0);
  return elements;
}
// From numbers of the given type to complex ones.
std::size_t fft(const std::vector<long long>& lengths, long long batch, int input) {
  std::size_t bytes = 1;
  EXPECT_EQ(cufftXtMakePlanMany(1, static_cast<int>(lengths.size()), lengths.data(), nullptr, 1, 1, input, nullptr, 1,
                                1, kComplex64, batch, &bytes, kComplex64),
            0);
  return bytes;
}

// Allocated by PyTorch 2.11 on an H200 for torch.linalg.cholesky, lu_factor, ldl_factor and eigh.
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

// Sizes, types and shapes without a measurement, or for which a formula is not exact.
TEST(Cusolver, UnmeasuredCallsAreCounted) {
  const std::uint64_t before = estimates();
  EXPECT_NEAR(static_cast<double>(eigenvalues(100, kFloat64)), 1379416, 64);  // measured, but not equal to the formula
  EXPECT_EQ(estimates(), before + 1);
  static_cast<void>(potrf(20000, kComplex64));
  static_cast<void>(lu(cusolverDnSgetrf_bufferSize, 1400, 4));
  static_cast<void>(ldl(cusolverDnSsytrf_bufferSize, 20000, 4));
  static_cast<void>(jacobi(4096));
  static_cast<void>(eigenvalues(24, kFloat32, 4));
  EXPECT_EQ(estimates(), before + 6);
  int elements = 0;
  EXPECT_EQ(cusolverDnDgetrf_bufferSize(nullptr, 64, 32, nullptr, 64, &elements), 0);
  EXPECT_EQ(estimates(), before + 7);
}

// LAPACK's dsyevd: LWORK is at least 1 + 6 N + 2 N**2 with vectors.
TEST(Cusolver, OthersAreThoseOfLapack) {
  int elements = 0;
  EXPECT_EQ(cusolverDnDsyevd_bufferSize(nullptr, 1, 0, 100, nullptr, 100, nullptr, &elements), 0);
  EXPECT_EQ(elements, 20601);
  EXPECT_EQ(cusolverDnDsyevd_bufferSize(nullptr, 1, 0, 1 << 20, nullptr, 1 << 20, nullptr, &elements), 0);
  EXPECT_EQ(elements, INT32_MAX);  // not negative
}

// Results of cuSOLVER of CUDA 13.0 on an H200.
TEST(Cusolver, QrAndSingularValuesAreAsMeasured) {
  const std::uint64_t before = estimates();
  EXPECT_EQ(qr(512, 512, kFloat32), 4194432U);
  EXPECT_EQ(qr(1024, 1024, kFloat64), 12583040U);
  EXPECT_EQ(qr(100, 100, kComplex64), 6291584U);
  int elements = 0;
  EXPECT_EQ(cusolverDnCgeqrf_bufferSize(nullptr, 512, 512, nullptr, 512, &elements), 0);
  EXPECT_EQ(elements, 1048576);
  EXPECT_EQ(cusolverDnSorgqr_bufferSize(nullptr, 512, 512, 330, nullptr, 512, nullptr, &elements), 0);
  EXPECT_EQ(elements, 213248);
  EXPECT_EQ(cusolverDnSorgqr_bufferSize(nullptr, 445, 348, 31, nullptr, 445, nullptr, &elements), 0);
  EXPECT_EQ(elements, 52064);
  EXPECT_EQ(singular_values(512, 512), 559648);
  EXPECT_EQ(singular_values(2048, 2048), 8539200);
  EXPECT_EQ(cusolverDnSgesvdjBatched_bufferSize(nullptr, 1, 23, 11, nullptr, 23, nullptr, nullptr, 23, nullptr, 11,
                                                &elements, nullptr, 64),
            0);
  EXPECT_EQ(elements, 992);
  EXPECT_EQ(estimates(), before);
  EXPECT_NEAR(singular_values(31, 31), 5088, 32);  // sizes that are no multiple of 8
  EXPECT_EQ(estimates(), before + 1);
  static_cast<void>(singular_values(64, 32));
  static_cast<void>(qr(16384, 710, kComplex64));
  EXPECT_EQ(estimates(), before + 3);
}

// Results of cuFFT of CUDA 13.0 on an H200.
TEST(Cufft, WorkspacesAreAsMeasured) {
  const std::uint64_t before = counted(Estimate::cufft_workspace);
  EXPECT_EQ(fft({8192}, 1000, kComplex64), 0U);
  EXPECT_EQ(fft({700}, 256, kComplex64), 0U);
  EXPECT_EQ(fft({54000}, 1000, kComplex64), 432000000U);
  EXPECT_EQ(fft({65536}, 32, kComplex64), 16777216U);
  EXPECT_EQ(fft({16384}, 256, kFloat32), 0U);
  EXPECT_EQ(fft({131072}, 5, kFloat32), 2621480U);
  EXPECT_EQ(fft({1048576}, 50, kFloat32), 209715600U);
  EXPECT_EQ(fft({64, 32}, 2, kComplex64), 0U);
  EXPECT_EQ(counted(Estimate::cufft_workspace), before);
  const double rough = static_cast<double>(fft({17793}, 2, kComplex64));
  EXPECT_NEAR(rough / 1153024, 1, 0.02);  // 27 * 659, by no formula
  EXPECT_EQ(counted(Estimate::cufft_workspace), before + 1);
}

TEST(Cufft, PlansDiffer) {
  int first = 0;
  int second = 0;
  EXPECT_EQ(cufftCreate(&first), 0);
  EXPECT_EQ(cufftCreate(&second), 0);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace tidemark::phantom
