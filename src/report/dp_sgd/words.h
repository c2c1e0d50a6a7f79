// A sweep of DP-SGD training in words.
#pragma once

#include <cstddef>
#include <string>

#include "analyze/sweep/dp_sgd.h"

namespace tidemark {

/// "config 1": rows are counted from 1, as files name them.
[[nodiscard]] std::string configuration_name(std::size_t row);

/// "seq_length=128 batch_size=8", after the GPU where there are several.
[[nodiscard]] std::string configuration_words(const Sweep& sweep, std::size_t row);

/// "per-sample gradients" of "per_sample_gradients".
[[nodiscard]] std::string kind_words(const std::string& kind);

}  // namespace tidemark
