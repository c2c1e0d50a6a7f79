// Commands that also draw: --format, and a file whose ending says what to write.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/reading.h"

namespace tidemark::cli {

struct PictureOptions : ReadingOptions {
  std::string output;
};

/// --format and -o; `formats` as "text|json|png|svg".
void add_picture_format(CommandLine& app, PictureOptions& options, const std::string& formats);

/// What --format says, else what the output's ending does. An error where it says nothing, or for a PNG on a terminal.
Result<std::string> output_format(const PictureOptions& options, const std::string& formats);

/// Writes to the file, which appears whole or not at all, or to stdout where `path` is "" or "-". The exit code.
int write_output(const std::string& path, const std::string& bytes);

}  // namespace tidemark::cli
