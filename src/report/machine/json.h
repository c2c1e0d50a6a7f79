// What a machine has, and what can be recorded on it, as JSON; docs/commands.md describes the fields.
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace tidemark {

[[nodiscard]] std::string to_json(const Inventory& inventory);
[[nodiscard]] std::string to_json(const Diagnosis& diagnosis);

}  // namespace tidemark
