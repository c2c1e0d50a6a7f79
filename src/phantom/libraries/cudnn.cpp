// cuDNN.
#include <cstddef>
#include <string>

#include "phantom/gpu/driver_memory.h"
#include "phantom/gpu/handles.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"

namespace tidemark::phantom {
namespace {

constexpr int kBatchNormalizationSpatial = 1;  // CUDNN_BATCHNORM_SPATIAL

// Neither workspace nor reserve in the mode that contiguous images have, as measured; the other modes were not
// measured.
int answer_batch_normalization(int mode, std::size_t* bytes) {
  if (mode != kBatchNormalizationSpatial)
    count_estimate(Estimate::cudnn_workspace, "batch normalization in cuDNN's mode " + std::to_string(mode));
  *bytes = 0;
  return 0;
}

}  // namespace

TIDEMARK_PHANTOM_API int cudnnCreate(Handle* handle) {
  *handle = new_handle();
  driver_memory().create_cudnn_handle();
  return 0;
}
TIDEMARK_PHANTOM_API std::size_t cudnnGetVersion() {
  return static_cast<std::size_t>(profile().cudnn_version);
}
TIDEMARK_PHANTOM_API std::size_t cudnnGetCudartVersion() {
  return static_cast<std::size_t>(profile().cuda_version);
}
TIDEMARK_PHANTOM_API int cudnnGetStream(Handle, Handle* stream) {
  *stream = nullptr;
  return 0;
}
// libraryPropertyType: major, minor, patch.
TIDEMARK_PHANTOM_API int cudnnGetProperty(int type, int* value) {
  const int version = profile().cudnn_version;
  *value = type == 0 ? version / 10000 : type == 1 ? version / 100 % 100 : version % 100;
  return 0;
}
TIDEMARK_PHANTOM_API const char* cudnnGetErrorString(int) {
  return "status of the phantom GPU";
}
TIDEMARK_PHANTOM_API void cudnnGetLastErrorString(char* text, std::size_t bytes) {
  if (bytes != 0) *text = '\0';
}

TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(Handle, int mode, int, Handle, Handle,
                                                                                  Handle, Handle, Handle,
                                                                                  std::size_t* bytes) {
  return answer_batch_normalization(mode, bytes);
}
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(Handle, int mode, int, Handle, Handle,
                                                                              std::size_t* bytes) {
  return answer_batch_normalization(mode, bytes);
}
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(Handle, int mode, int, Handle, Handle,
                                                                           Handle, Handle, Handle, Handle, Handle,
                                                                           std::size_t* bytes) {
  return answer_batch_normalization(mode, bytes);
}

}  // namespace tidemark::phantom
