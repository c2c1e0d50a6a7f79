// What monitors saw in the past, as JSON; docs/commands.md describes the fields.
#pragma once

#include <string>

#include "publish/history/history.h"

namespace tidemark {

[[nodiscard]] std::string to_json(const History& history);

}  // namespace tidemark
