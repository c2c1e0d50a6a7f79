#include "analyze/attribution/making.h"

#include <algorithm>
#include <array>

#include "analyze/common/frame_origin.h"
#include "analyze/common/stack_matching.h"

namespace tidemark {
namespace {

// A file or folder below site-packages or the standard library, and how names of its functions begin; "" = all.
struct Maker {
  std::string_view path;
  std::string_view function;
  Making makes;
};

constexpr std::array kMakers = {
    Maker{"opacus/grad_sample/", "", Making::per_sample_gradient},
    Maker{"torch/distributed/fsdp/", "all_gather", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "foreach_all_gather", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "alloc_all_gather", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "init_all_gather", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "init_unsharded", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "_alloc_padded_unsharded", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "_all_gather_flat", Making::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "unshard", Making::gathered_parameter},
    Maker{"torch/nn/parallel/distributed.py", "_ddp_init_helper", Making::gradient_bucket},
    Maker{"torch/nn/parallel/distributed.py", "_pre_forward", Making::gradient_bucket},
    Maker{"torch/nn/parallel/distributed.py", "_rebuild_buckets", Making::gradient_bucket},
    Maker{"torch/nn/modules/module.py", "_apply", Making::model},
    Maker{"torch/nn/modules/module.py", "to_empty", Making::model},
    Maker{"torch/nn/modules/transformer.py", "_get_clones", Making::model},
    Maker{"torch/nn/modules/", "__init__", Making::model},
    Maker{"torch/nn/parameter.py", "__new__", Making::model},
    Maker{"transformers/modeling_utils.py", "from_pretrained", Making::model},
    Maker{"peft/peft_model.py", "__init__", Making::model},
    Maker{"peft/mapping", "get_peft_model", Making::model},
    Maker{"peft/tuners/", "update_layer", Making::model},
    Maker{"accelerate/utils/modeling.py", "", Making::model},
    Maker{"copy.py", "deepcopy", Making::copy},
    Maker{"torch/serialization.py", "", Making::copy},
    Maker{"torch/distributed/checkpoint/", "", Making::copy},
    Maker{"torch/optim/swa_utils.py", "", Making::copy},
    Maker{"safetensors/", "", Making::copy},
    Maker{"accelerate/utils/operations.py", "send_to_device", Making::input},
    Maker{"transformers/trainer.py", "_prepare_input", Making::input},
    Maker{"torch/nn/parallel/scatter_gather.py", "scatter", Making::input},
    Maker{"torch/distributed/utils.py", "_to_kwargs", Making::input},
    Maker{"torch/distributed/utils.py", "_recursive_to", Making::input},
    Maker{"pytorch_lightning/", "move_data_to_device", Making::input},
    Maker{"lightning/", "move_data_to_device", Making::input},
    Maker{"lightning_fabric/", "move_data_to_device", Making::input},
};

}  // namespace

Making made_by_frame(std::string_view file, std::string_view function) {
  const std::string_view path = installed_path(file);
  const std::string_view name = plain_name(function);
  const auto* const maker = std::find_if(kMakers.begin(), kMakers.end(), [&](const Maker& entry) {
    return path.starts_with(entry.path) && name.starts_with(entry.function);
  });
  return maker == kMakers.end() ? Making::nothing_known : maker->makes;
}

}  // namespace tidemark
