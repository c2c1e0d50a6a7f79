// What a machine has, and what can be recorded on it, as text for people.
#pragma once

#include <string>

#include "doctor/diagnosis.h"
#include "report/common/terminal.h"

namespace tidemark {

[[nodiscard]] std::string to_text(const Inventory& inventory, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Diagnosis& diagnosis, const Terminal& terminal);

}  // namespace tidemark
