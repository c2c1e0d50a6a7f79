#include "phantom/libraries/measured_libraries.h"

#include "phantom/gpu/profile.h"

namespace tidemark::phantom {
namespace {

bool is_measured_gpu() {
  return profile().major == 9 && profile().minor == 0;
}

}  // namespace

bool is_measured_cudnn() {
  return is_measured_gpu() && profile().cudnn_version / 100 == 919;
}

bool is_measured_cuda_libraries() {
  return is_measured_gpu() && profile().cuda_version == 13000;
}

}  // namespace tidemark::phantom
