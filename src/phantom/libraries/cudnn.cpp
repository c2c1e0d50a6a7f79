// cuDNN.
#include <cstring>
#include <map>
#include <vector>

#include "phantom/gpu/handles.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {

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

// Batch normalization takes neither workspace nor reserve in the mode SPATIAL without a fused operation, as PyTorch
// asks for it with contiguous tensors.
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(Handle, int, int, Handle, Handle,
                                                                                  Handle, Handle, Handle,
                                                                                  std::size_t* bytes) {
  *bytes = 0;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(Handle, int, int, Handle, Handle,
                                                                              std::size_t* bytes) {
  *bytes = 0;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(Handle, int, int, Handle, Handle, Handle,
                                                                           Handle, Handle, Handle, Handle,
                                                                           std::size_t* bytes) {
  *bytes = 0;
  return 0;
}

}  // namespace tidemark::phantom
