// cuDNN.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/driver_memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/convolution.h"
#include "phantom/libraries/tensor_descriptor.h"

namespace tidemark::phantom {

namespace {

enum class NormalizationPass : std::uint8_t { forward, backward };

/// For images in channels-last layout.
struct BatchNormalization {
  int type = 0;  ///< cudnnDataType_t of the images
  std::uint64_t channels = 0;
  std::uint64_t rows = 0;  ///< product of all other sizes: batch, height, width
};

struct NormalizationWorkspace {
  std::uint64_t bytes = 0;
  bool measured = false;  ///< such images were measured; otherwise `bytes` is an estimate by the same formula
};

// Each tile, of this many channels and rows, leaves two sums for each channel, and in the forward pass a word.
struct Tile {
  std::uint64_t channels;
  std::uint64_t rows;
};

Tile tile_of(const BatchNormalization& batch, NormalizationPass pass) {
  const bool forward = pass == NormalizationPass::forward;
  const std::uint64_t rows = !forward ? 96 : element_bytes(batch.type) == 2 ? 160 : 64;
  if (batch.channels % 8 == 0) return {64, rows};
  return batch.channels <= 4 ? Tile{4, 4 * rows} : Tile{16, rows};
}

std::uint64_t pieces(std::uint64_t whole, std::uint64_t piece) {
  return (whole + piece - 1) / piece;
}

bool is_measured(const BatchNormalization& batch) {
  const bool type = batch.type == type_named("float") || batch.type == type_named("half");
  return is_measured_cudnn() && type && (batch.channels % 8 == 0 || batch.channels == 3 || batch.channels == 30);
}

// With cuDNN 9.19 on an H200, in float32 and float16, channels that are a multiple of 8, 3 or 30: the formulas equal
// all 416 measured workspaces, of up to 8.4 million rows. There is no reserve space.
NormalizationWorkspace normalization_workspace(const BatchNormalization& batch, NormalizationPass pass) {
  const Tile tile = tile_of(batch, pass);
  const std::uint64_t columns = pieces(batch.channels, tile.channels);
  const std::uint64_t tiles = columns * pieces(batch.rows, tile.rows);
  const bool forward = pass == NormalizationPass::forward;
  const std::uint64_t each = 8 * tile.channels + (forward ? 4 : 0);
  return {tiles * each + (forward ? 1072 : 1056) + 4 * columns, is_measured(batch)};
}

constexpr int kBatchNormalizationSpatial = 1;            // CUDNN_BATCHNORM_SPATIAL
constexpr int kBatchNormalizationSpatialPersistent = 2;  // CUDNN_BATCHNORM_SPATIAL_PERSISTENT

constexpr std::size_t kImageSizes = 4;

void count_batch_normalization(std::string what) {
  count_estimate(Estimate::cudnn_workspace, what.insert(0, "batch normalization "));
}

// As measured, contiguous images take neither workspace nor reserve space. The persistent mode is used for
// channels-last images; the per-activation mode was not measured.
int answer_batch_normalization(int mode, const TensorDescriptor* images, NormalizationPass pass, std::size_t* bytes) {
  *bytes = 0;
  const bool known = images != nullptr && images->sizes.size() > 1;
  if (mode != kBatchNormalizationSpatialPersistent || !known) {
    if (mode != kBatchNormalizationSpatial || !is_measured_cudnn())
      count_batch_normalization("in cuDNN's mode " + std::to_string(mode));
    return 0;
  }
  BatchNormalization batch{.type = images->type, .channels = static_cast<std::uint64_t>(images->sizes[1]), .rows = 1};
  for (std::size_t size = 0; size < images->sizes.size(); ++size)
    if (size != 1) batch.rows *= static_cast<std::uint64_t>(images->sizes[size]);
  const NormalizationWorkspace workspace = normalization_workspace(batch, pass);
  if (!workspace.measured || images->sizes.size() != kImageSizes)
    count_batch_normalization("of " + std::to_string(batch.rows) + " x " + std::to_string(batch.channels));
  *bytes = workspace.bytes;
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

TIDEMARK_PHANTOM_API int cudnnCreateTensorDescriptor(TensorDescriptor** descriptor) {
  *descriptor = new TensorDescriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnDestroyTensorDescriptor(TensorDescriptor* descriptor) {
  delete descriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnSetTensorNdDescriptor(TensorDescriptor* descriptor, int type, int count, const int* sizes,
                                                    const int*) {
  descriptor->type = type;
  descriptor->sizes.assign(sizes, sizes + count);
  return 0;
}
// Strides of a contiguous tensor: PyTorch ignores them.
TIDEMARK_PHANTOM_API int cudnnGetTensorNdDescriptor(const TensorDescriptor* descriptor, int requested, int* type,
                                                    int* count, int* sizes, int* strides) {
  *type = descriptor->type;
  *count = static_cast<int>(descriptor->sizes.size());
  std::copy_n(descriptor->sizes.begin(), std::min(requested, *count), sizes);
  int stride = 1;
  for (int size = *count - 1; size >= 0; --size) {
    if (size < requested) strides[size] = stride;
    stride *= descriptor->sizes[static_cast<std::size_t>(size)];
  }
  return 0;
}

TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(Handle, int mode, int,
                                                                                  const TensorDescriptor* images,
                                                                                  Handle, Handle, Handle, Handle,
                                                                                  std::size_t* bytes) {
  return answer_batch_normalization(mode, images, NormalizationPass::forward, bytes);
}
// The measured cases take none; in other cases it is counted with the workspace.
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(Handle, int, int, Handle, Handle,
                                                                              std::size_t* bytes) {
  *bytes = 0;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(Handle, int mode, int,
                                                                           const TensorDescriptor* images, Handle,
                                                                           Handle, Handle, Handle, Handle, Handle,
                                                                           std::size_t* bytes) {
  return answer_batch_normalization(mode, images, NormalizationPass::backward, bytes);
}

}  // namespace tidemark::phantom
