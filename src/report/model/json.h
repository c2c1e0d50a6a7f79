// What a stored model takes, as JSON; docs/commands.md describes the fields.
#pragma once

#include <string>

#include "model/model_facts.h"

namespace tidemark {

[[nodiscard]] std::string to_json(const ModelFacts& facts);

}  // namespace tidemark
