#include "cli/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "analyze/common/analysis_options.h"
#include "analyze/common/moment.h"
#include "base/output_file.h"
#include "base/standard_streams.h"
#include "base/units.h"
#include "query/words/printable.h"

namespace tidemark::cli {
namespace {

/// The usual extension of the format's files.
std::string extension_of(const std::string& format) {
  return format == "text" ? ".txt" : "." + format;
}

// "text|json".
template <typename Enum, std::size_t Count>
std::string names_of(const EnumName<Enum> (&names)[Count]) {
  std::string text;
  for (const EnumName<Enum>& entry : names) text.append(text.empty() ? "" : "|").append(entry.name);
  return text;
}

}  // namespace

void add_device(CommandLine& app, std::string& device) {
  app.add_option("--device", device, "Only this device, such as cuda:0")->type_name("DEVICE");
}

void add_format(CommandLine& app, std::string& format, const std::string& formats) {
  app.add_option("--format", format, "Output format")->one_of(formats)->show_default("text");
}

void add_option(CommandLine& app, const AnalysisOption& option, AnalysisOptions& chosen) {
  const std::string flag = "--" + option.name;
  if (option.kind == AnalysisOption::Kind::flag) {
    app.add_flag(
        flag, [&chosen, name = option.name] { chosen.set(name, "yes"); }, option.help);
    return;
  }
  // If a number has a minimum, help shows its range.
  const std::string range =
      option.least == 0 ? "" : fmt::format(" ({} to {})", format_count(option.least), format_count(option.most));
  Option* added = app.add_option(
      flag, [&chosen, name = option.name](const std::string& value) { chosen.set(name, value); }, option.help + range);
  added->show_default(option.computed.empty() ? option.initial : option.computed);
  if (option.kind == AnalysisOption::Kind::word) {
    added->one_of(option.value);
    return;
  }
  added->type_name(option.value);
  added->check([option](const std::string& value) {
    return option.allows(value) ? "" : fmt::format("invalid value '{}' (expected {})", value, option.expected());
  });
}

void add_moment(CommandLine& app, std::string& at) {
  app.add_option("--at", at,
                 "Point in time: peak (of each device), end, a time (12.5s, 300ms), a share of the run (40%), the "
                 "start of a training step, counted from 0 (step:3), or the name of a mark")
      ->type_name("peak|end|TIME|STEP|MARK")
      ->check([](const std::string& value) {
        return may_be_a_moment(value) ? std::string() : parse_moment(value).error().message;
      });
}

void add_output(CommandLine& app, std::string& output) {
  app.add_option("-o,--output", output, "Output file; - is stdout")
      ->type_name("FILE")
      ->show_default("stdout, unless it is a terminal");
}

void add_reading(CommandLine& app, ReadingOptions& options, const ReadingArguments& arguments) {
  app.add_option(
         "FILE", options.files,
         "Recordings or PyTorch memory snapshots; each is analyzed on its own. Default: the newest recording in "
         "this folder")
      ->type_name("FILE");
  add_device(app, options.device);
  options.formats = arguments.formats;
  if (!options.formats.empty()) add_format(app, options.format, options.formats);
  if (!options.formats.empty()) {
    const bool draws = options.formats.find("png") != std::string::npos;
    app.add_option(draws ? "-o,--output,--plot" : "-o,--output", options.output,
                   "Output file; its extension sets the format where --format does not")
        ->type_name("FILE");
  }
  if (arguments.at) add_moment(app, options.at);
}

Result<void> choose_files(std::vector<std::string>& files) {
  if (!files.empty()) return {};
  std::error_code error;
  std::filesystem::file_time_type newest;
  std::string chosen;
  for (const auto& entry : std::filesystem::directory_iterator(".", error)) {
    std::error_code ignored;  // the file may have been deleted meanwhile
    if (entry.path().extension() != ".tide" || !entry.is_regular_file(ignored)) continue;
    const auto written = entry.last_write_time(ignored);
    if (ignored || (!chosen.empty() && written <= newest)) continue;
    newest = written;
    chosen = entry.path().filename().string();
  }
  if (chosen.empty()) {
    return Error{"no FILE given, and no recording (*.tide) in this folder; `tidemark run -- PROGRAM` makes one"};
  }
  say(shown("reading " + shell_word(chosen) + ", the newest recording in this folder"));
  files.push_back(chosen);
  return {};
}

void add_owners(CommandLine& app, OwnerArguments& owners) {
  FilterOptions& filter = owners.filter;
  app.add_option("--module", filter.module,
                 "Only blocks of these modules, such as 'layers.3.*', and of what is in them")
      ->type_name("PATTERN");
  app.add_option("--component", filter.component, "Only blocks of this part of the model")
      ->one_of(names_of(kComponentNames));
  app.add_option("--category", filter.category, "Only blocks of this category")->one_of(names_of(kCategoryNames));
  app.add_option("--phase", filter.phase, "Only blocks allocated in this part of a training step")
      ->one_of(names_of(kPhaseNames));
  app.add_option("--component-rules", owners.rules,
                 "What belongs to which component: lines such as 'head path *.classifier', before the built-in rules")
      ->type_name("FILE");
}

Result<void> check_output(std::span<const std::string> inputs, const std::string& output, bool binary,
                          const std::string& what, const std::string& example) {
  const bool to_stdout = output.empty() || output == "-";
  if (to_stdout && (output.empty() || binary) && isatty(STDOUT_FILENO) != 0) {
    return Error{fmt::format("{} is not written to a terminal; name a file with -o {}", what, example)};
  }
  for (const std::string& input : inputs) {
    std::error_code error;  // a file that does not exist yet is no input
    if (!output.empty() && std::filesystem::equivalent(input, output, error)) {
      return Error{fmt::format("{}: is an input file; name another output file with -o", output)};
    }
  }
  return {};
}

Result<std::string> output_format(const ReadingOptions& options) {
  std::string format = options.format;
  if (format.empty() && !options.output.empty() && options.output != "-") {
    const std::string extension = std::filesystem::path(options.output).extension().string();
    std::vector<std::string> extensions;
    for (const std::string& known : split_choices(options.formats)) {
      extensions.push_back(extension_of(known));
      if (extension == extensions.back()) format = known;
    }
    if (format.empty()) {
      return Error{fmt::format("{}: unknown file extension (expected {}); set the format with --format", options.output,
                               either_of(extensions))};
    }
  }
  if (format == "png" && options.output.empty()) {
    if (auto status = check_output({}, "", true, "a PNG file", "picture.png"); !status) return status.error();
  }
  return format.empty() ? "text" : format;
}

int write_output(const std::string& path, const std::string& bytes, std::string_view hint) {
  if (path.empty() || path == "-") return print(bytes);
  if (const auto written = write_file(path, bytes); !written) return fail(written.error().message);
  say_written(path, bytes.size(), hint);
  return kOk;
}

void say_written(const std::string& path, std::uint64_t bytes, std::string_view hint) {
  say(shown(fmt::format("wrote {}, {}", shell_word(path), format_bytes(bytes))) + std::string(hint));
}

}  // namespace tidemark::cli
