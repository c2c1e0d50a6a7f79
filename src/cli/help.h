// The text of --help, the tables of options in docs/commands and the manual page (the template
// share/man/tidemark.1.in), made from the model of the command line.
#pragma once

#include <cstddef>
#include <string>

#include "cli/command_model.h"

namespace tidemark::cli {

/// How a name is written before its description: "-o, --output FILE", or "FILE" for a positional argument.
[[nodiscard]] std::string names_of(const OptionModel& option);

/// The description, with its default: "Output format [default: text]".
[[nodiscard]] std::string description_of(const OptionModel& option);

/// Help of a command or of the whole program, with descriptions wrapped to `width` columns.
[[nodiscard]] std::string help_text(const CommandModel& command, std::size_t width);

/// For a command: usage, tables of its options and examples, as Markdown. For the whole program: the table of commands,
/// with links relative to docs/.
[[nodiscard]] std::string help_markdown(const CommandModel& command);

/// The width of the terminal, at most 100 columns; 80 if `descriptor` is not one.
[[nodiscard]] std::size_t help_width(int descriptor);

/// Prints it on stdout. The exit code.
int print_help(const CommandModel& command);

/// `page` with @SYNOPSIS@, @OPTIONS@ (of the program) and @COMMANDS@ replaced.
[[nodiscard]] std::string manual_page(const CommandModel& program, std::string page);

}  // namespace tidemark::cli
