// cuDNN's connectionist temporal classification (torch.nn.CTCLoss).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/tensor_descriptor.h"

namespace tidemark::phantom {

namespace {

struct CtcLossDescriptor {
  int longest_label = 0;
};

// The variables of the forward and the backward algorithm, a word for each step, sequence, and state: the label's
// elements and the blanks around them. Not measured. https://www.cs.toronto.edu/~graves/icml_2006.pdf
int answer_ctc_loss(const TensorDescriptor& probabilities, int longest_label, std::size_t* bytes) {
  constexpr std::size_t kVariables = 2;
  constexpr std::size_t kSizes = 3;  // steps, sequences, classes
  if (probabilities.sizes.size() < kSizes) return kCudnnBadParameter;
  const auto steps = static_cast<std::size_t>(probabilities.sizes[0]);
  const auto sequences = static_cast<std::size_t>(probabilities.sizes[1]);
  const std::size_t states = 2 * static_cast<std::size_t>(std::max(0, longest_label)) + 1;
  *bytes = kVariables * steps * sequences * states * sizeof(float);
  count_estimate(Estimate::cudnn_workspace,
                 "ctc_loss of " + std::to_string(steps) + " steps, batch size " + std::to_string(sequences));
  return 0;
}

}  // namespace

TIDEMARK_PHANTOM_API int cudnnCreateCTCLossDescriptor(CtcLossDescriptor** descriptor) {
  *descriptor = new CtcLossDescriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnDestroyCTCLossDescriptor(CtcLossDescriptor* descriptor) {
  delete descriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnSetCTCLossDescriptor_v8(CtcLossDescriptor* descriptor, int, int, int, int longest_label) {
  descriptor->longest_label = longest_label;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnSetCTCLossDescriptor_v9(CtcLossDescriptor* descriptor, int, int, int, int longest_label) {
  descriptor->longest_label = longest_label;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnGetCTCLossWorkspaceSize_v8(Handle, int, const CtcLossDescriptor* descriptor,
                                                         const TensorDescriptor* probabilities, const TensorDescriptor*,
                                                         std::size_t* bytes) {
  return answer_ctc_loss(*probabilities, descriptor->longest_label, bytes);
}
TIDEMARK_PHANTOM_API int cudnnGetCTCLossWorkspaceSize(Handle, const TensorDescriptor* probabilities,
                                                      const TensorDescriptor*, const int*, const int* label_lengths,
                                                      const int*, int, const CtcLossDescriptor*, std::size_t* bytes) {
  int longest = 0;
  if (label_lengths != nullptr && probabilities->sizes.size() > 1)
    longest = *std::max_element(label_lengths, label_lengths + std::max(1, probabilities->sizes[1]));
  return answer_ctc_loss(*probabilities, longest, bytes);
}

}  // namespace tidemark::phantom
