// The manual page: the template share/man/tidemark.1.in with what the model of the command line says.
#pragma once

#include <string>

#include "cli/command_model.h"

namespace tidemark::cli {

/// `page` with @SYNOPSIS@, @OPTIONS@ (of the program) and @COMMANDS@ replaced.
[[nodiscard]] std::string manual_page(const CommandModel& program, std::string page);

}  // namespace tidemark::cli
