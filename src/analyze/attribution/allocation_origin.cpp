#include "analyze/attribution/allocation_origin.h"

#include <algorithm>
#include <array>

#include "analyze/common/stack_matching.h"
#include "analyze/common/stack_names.h"

namespace tidemark {
namespace {

// A file or folder below site-packages or the standard library, and how names of its functions begin; "" = all.
struct Maker {
  std::string_view path;
  std::string_view function;
  AllocationOrigin makes;
};

constexpr std::array kMakers = {
    Maker{"opacus/grad_sample/", "", AllocationOrigin::per_sample_gradient},
    Maker{"torch/distributed/fsdp/", "all_gather", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "foreach_all_gather", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "alloc_all_gather", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "init_all_gather", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "init_unsharded", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "_alloc_padded_unsharded", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "_all_gather_flat", AllocationOrigin::gathered_parameter},
    Maker{"torch/distributed/fsdp/", "unshard", AllocationOrigin::gathered_parameter},
    Maker{"torch/nn/parallel/distributed.py", "_ddp_init_helper", AllocationOrigin::gradient_bucket},
    Maker{"torch/nn/parallel/distributed.py", "_pre_forward", AllocationOrigin::gradient_bucket},
    Maker{"torch/nn/parallel/distributed.py", "_rebuild_buckets", AllocationOrigin::gradient_bucket},
    Maker{"torch/nn/modules/module.py", "_apply", AllocationOrigin::model},
    Maker{"torch/nn/modules/module.py", "to_empty", AllocationOrigin::model},
    Maker{"torch/nn/modules/transformer.py", "_get_clones", AllocationOrigin::model},
    Maker{"torch/nn/modules/", "__init__", AllocationOrigin::model},
    Maker{"torch/nn/parameter.py", "__new__", AllocationOrigin::model},
    Maker{"transformers/modeling_utils.py", "from_pretrained", AllocationOrigin::model},
    Maker{"peft/peft_model.py", "__init__", AllocationOrigin::model},
    Maker{"peft/mapping", "get_peft_model", AllocationOrigin::model},
    Maker{"peft/tuners/", "update_layer", AllocationOrigin::model},
    Maker{"accelerate/utils/modeling.py", "", AllocationOrigin::model},
    Maker{"copy.py", "deepcopy", AllocationOrigin::copy},
    Maker{"torch/nn/parameter.py", "__deepcopy__", AllocationOrigin::model_copy},
    Maker{"torch/serialization.py", "save", AllocationOrigin::copy},
    Maker{"torch/serialization.py", "_save", AllocationOrigin::copy},
    Maker{"torch/serialization.py", "_legacy_save", AllocationOrigin::copy},
    Maker{"torch/serialization.py", "", AllocationOrigin::loaded_copy},
    Maker{"torch/distributed/checkpoint/", "", AllocationOrigin::copy},
    Maker{"torch/optim/swa_utils.py", "", AllocationOrigin::copy},
    Maker{"torch/optim/adam.py", "_multi_tensor_", AllocationOrigin::fusable_step},
    Maker{"torch/optim/adamw.py", "_multi_tensor_", AllocationOrigin::fusable_step},
    Maker{"torch/optim/sgd.py", "_multi_tensor_", AllocationOrigin::fusable_step},
    Maker{"torch/optim/", "_multi_tensor_", AllocationOrigin::foreach_step},
    Maker{"safetensors/torch.py", "save", AllocationOrigin::copy},
    Maker{"safetensors/", "", AllocationOrigin::loaded_copy},
    Maker{"accelerate/utils/operations.py", "send_to_device", AllocationOrigin::input},
    Maker{"transformers/trainer.py", "_prepare_input", AllocationOrigin::input},
    Maker{"torch/nn/parallel/scatter_gather.py", "scatter", AllocationOrigin::input},
    Maker{"torch/distributed/utils.py", "_to_kwargs", AllocationOrigin::input},
    Maker{"torch/distributed/utils.py", "_recursive_to", AllocationOrigin::input},
    Maker{"pytorch_lightning/", "move_data_to_device", AllocationOrigin::input},
    Maker{"lightning/", "move_data_to_device", AllocationOrigin::input},
    Maker{"lightning_fabric/", "move_data_to_device", AllocationOrigin::input},
};

}  // namespace

AllocationOrigin origin_of_frame(std::string_view file, std::string_view function) {
  const std::string_view path = installed_path(file);
  const std::string_view name = plain_name(function);
  const auto* const maker = std::find_if(kMakers.begin(), kMakers.end(), [&](const Maker& entry) {
    return path.starts_with(entry.path) && name.starts_with(entry.function);
  });
  return maker == kMakers.end() ? AllocationOrigin::nothing_known : maker->makes;
}

}  // namespace tidemark
