// cuFFT: plans, and how large a workspace they ask for (fft_workspace.h).
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/fft_workspace.h"
#include "phantom/libraries/measured_libraries.h"

namespace tidemark::phantom {
namespace {

// Of a complex number, by the cudaDataType that is computed with.
std::size_t complex_bytes(int type) {
  switch (type) {
    case 1:  // CUDA_R_64F
    case 5:  // CUDA_C_64F
      return 16;
    case 2:   // CUDA_R_16F
    case 6:   // CUDA_C_16F
    case 14:  // CUDA_R_16BF
    case 15:  // CUDA_C_16BF
      return 4;
    default:
      return 8;
  }
}

bool is_real(int type) {
  constexpr int kFloat32 = 0;  // CUDA_R_32F
  constexpr int kFloat64 = 1;
  constexpr int kFloat16 = 2;
  constexpr int kBfloat16 = 14;
  return type == kFloat32 || type == kFloat64 || type == kFloat16 || type == kBfloat16;
}

}  // namespace

TIDEMARK_PHANTOM_API int cufftCreate(int* plan) {
  static std::atomic<int> next{1};
  *plan = next.fetch_add(1);
  return 0;
}
TIDEMARK_PHANTOM_API int cufftXtMakePlanMany(int, int rank, const long long* lengths, const long long* input_lengths,
                                             long long, long long, int input_type, const long long*, long long,
                                             long long, int output_type, long long batch, std::size_t* workspace,
                                             int type) {
  const bool strided = input_lengths != nullptr;
  const bool real = is_real(input_type) || is_real(output_type);
  const FftWorkspace found =
      fft_workspace({lengths, rank, batch, static_cast<std::int64_t>(complex_bytes(type)), real, strided});
  *workspace = static_cast<std::size_t>(found.bytes);
  if (found.measured && complex_bytes(type) >= 8 && is_measured_cuda_libraries()) return 0;
  std::string name = "a transform of";
  for (const long long* length = lengths; length != lengths + rank; ++length)
    name += (length == lengths ? " " : " x ") + std::to_string(*length);
  count_estimate(Estimate::cufft_workspace, name + ", batch size " + std::to_string(batch));
  return 0;
}

}  // namespace tidemark::phantom
