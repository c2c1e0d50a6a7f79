#include "cli/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/output_file.h"

namespace tidemark::cli {
namespace {

// "png, .svg, ...": the endings for the formats.
std::string endings(const std::string& formats) {
  std::string list;
  for (const std::string& format : split_choices(formats)) {
    list += (list.empty() ? "." : ", .") + (format == "text" ? "txt" : format);
  }
  return list;
}

Result<void> write_file(const std::string& path, const std::string& bytes) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

}  // namespace

void add_picture_format(CommandLine& app, PictureOptions& options, const std::string& formats) {
  options.format.clear();
  add_format(app, options, formats);
  const bool draws = formats.find("png") != std::string::npos;
  app.add_option(draws ? "-o,--output,--plot" : "-o,--output", options.output,
                 "Write to this file, in the format of its ending")
      ->type_name("FILE");
}

Result<std::string> output_format(const PictureOptions& options, const std::string& formats) {
  std::string format = options.format;
  if (format.empty() && !options.output.empty() && options.output != "-") {
    const std::string ending = std::filesystem::path(options.output).extension().string();
    for (const std::string& known : split_choices(formats)) {
      if (ending == "." + (known == "text" ? "txt" : known)) format = known;
    }
    if (format.empty()) {
      return Error{fmt::format("{}: the name must end in one of {}, or --format say what to write", options.output,
                               endings(formats))};
    }
  }
  if (format == "png" && options.output.empty() && isatty(STDOUT_FILENO) != 0) {
    return Error{"a PNG does not belong on a terminal: name a file with -o picture.png"};
  }
  return format.empty() ? "text" : format;
}

int write_output(const std::string& path, const std::string& bytes) {
  if (path.empty() || path == "-") return print(bytes);
  const auto written = write_file(path, bytes);
  return written ? kOk : fail(written.error().message);
}

}  // namespace tidemark::cli
