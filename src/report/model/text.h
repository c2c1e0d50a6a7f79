// What a stored model takes, as text for people and as comma-separated values.
#pragma once

#include <cstddef>
#include <string>

#include "model/model_facts.h"
#include "report/common/terminal.h"

namespace tidemark {

/// `depth` levels of modules; of equal blocks the first one's.
[[nodiscard]] std::string to_text(const ModelFacts& facts, std::size_t depth, const Terminal& terminal);

/// One row for each tensor. Columns: file, tensor, module, layer, dtype, shape, parameters, bytes.
[[nodiscard]] std::string to_csv(const ModelFacts& facts);

}  // namespace tidemark
