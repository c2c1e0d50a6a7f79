// The workspaces of cuSOLVER and cuFFT, which are estimates by rules of others.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

extern "C" {
int cusolverDnDsyevd_bufferSize(void*, int, int, int n, const void*, int, const void*, int* size);
int cusolverDnCgeqrf_bufferSize(void*, int m, int n, void*, int, int* size);
int cusolverDnXsyevBatched_bufferSize(void*, void*, int, int, std::int64_t n, int type, const void*, std::int64_t, int,
                                      const void*, int, std::size_t* device, std::size_t* host, std::int64_t batch);
int cufftCreate(int* plan);
int cufftXtMakePlanMany(int plan, int rank, const long long* lengths, const long long*, long long, long long, int,
                        const long long*, long long, long long, int, long long batch, std::size_t* workspace, int type);
}

namespace tidemark::phantom {
namespace {

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

TEST(Cusolver, GenericRoutinesAnswerInBytes) {
  constexpr int kDouble = 1;  // CUDA_R_64F
  std::size_t device = 0;
  std::size_t host = 1;
  EXPECT_EQ(cusolverDnXsyevBatched_bufferSize(nullptr, nullptr, 1, 0, 100, kDouble, nullptr, 100, kDouble, nullptr,
                                              kDouble, &device, &host, 3),
            0);
  EXPECT_EQ(device, 3U * 20601 * 8);
  EXPECT_EQ(host, 0U);
}

TEST(Cufft, WorkspacesAreWithinWhatNvidiaSays) {
  constexpr int kComplexFloat = 4;  // CUDA_C_32F
  int first = 0;
  int second = 0;
  EXPECT_EQ(cufftCreate(&first), 0);
  EXPECT_EQ(cufftCreate(&second), 0);
  EXPECT_NE(first, second);
  const auto workspace = [](long long height, long long width) {
    const long long lengths[] = {height, width};
    std::size_t bytes = 0;
    EXPECT_EQ(cufftXtMakePlanMany(1, 2, lengths, nullptr, 1, 1, kComplexFloat, nullptr, 1, 1, kComplexFloat, 5, &bytes,
                                  kComplexFloat),
              0);
    return bytes;
  };
  EXPECT_EQ(workspace(64, 210), 5U * 64 * 210 * 8);
  EXPECT_EQ(workspace(64, 11), 8U * 5 * 64 * 11 * 8);
}

}  // namespace
}  // namespace tidemark::phantom
