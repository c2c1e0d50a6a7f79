// LoRA adapters among stored tensors.
#pragma once

#include <optional>
#include <span>

#include "model/model_facts.h"

namespace tidemark {

/// None where no name is an adapter's.
[[nodiscard]] std::optional<AdapterFacts> find_adapters(std::span<const StoredTensor> tensors);

}  // namespace tidemark
