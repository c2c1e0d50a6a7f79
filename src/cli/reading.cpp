#include "cli/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "analyze/advice/advice.h"
#include "analyze/breakdown.h"
#include "analyze/common/analysis_options.h"
#include "analyze/common/moment.h"
#include "base/output_file.h"
#include "base/units.h"

namespace tidemark::cli {
namespace {

/// What a file's name ends in when it holds the format.
std::string extension_of(const std::string& format) {
  return format == "text" ? ".txt" : "." + format;
}

// What to type instead of a directory: the recordings in it.
std::string recordings_in(const std::string& directory) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".tide") found.push_back(entry->path().string());
  }
  if (found.empty()) return "it contains no .tide files";
  std::sort(found.begin(), found.end());
  const std::size_t more = found.size() - std::min(found.size(), kMost);
  found.resize(found.size() - more);
  return fmt::format("name the recordings in it: {}{}", fmt::join(found, " "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string wrong_value(const AnalysisOption& option, const std::string& value) {
  using Kind = AnalysisOption::Kind;
  std::string expected = fmt::format("an integer from {} to {}", option.least, option.most);
  if (option.kind == Kind::size) expected = "bytes, or a size such as 80GiB";
  if (option.kind == Kind::rate) expected = "bytes per step, such as 0, 512 or 10KiB/step";
  if (option.kind == Kind::share) expected = "a share such as 1% or 0.01";
  return fmt::format("invalid value '{}' (expected {})", value, expected);
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
  // Where a number has a least value, help says its range.
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
  added->check([option](const std::string& value) { return option.allows(value) ? "" : wrong_value(option, value); });
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
  app.add_option("FILE", options.files, "Recordings or PyTorch memory snapshots; each is analyzed on its own")
      ->required()
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

Result<AttributedStore> open_attributed(const std::string& path, const Progress& progress,
                                        const ComponentRules& rules) {
  auto store = open_store(path, progress);
  if (!store) return store.error();
  return attribute(std::move(*store), rules);
}

PeakOwners take_owners(const std::string& path, const ComponentRules& rules, Overview& overview) {
  constexpr std::uint64_t kMostEvents = 50'000'000;  // their blocks take some 4 GB while they are read
  if (!has_attribution(overview.definitions) || overview.event_count > kMostEvents) return {};
  auto store = open_attributed(path, make_progress(path), rules);
  if (!store || !store->attribution) return {};
  PeakOwners owners;
  Symbols symbols(store->definitions);
  for (std::size_t device = 0; device < store->devices.size(); ++device) {
    owners.advice.push_back(find_advice(*store, symbols, *store->attribution, device));
  }
  auto breakdown = analyze_breakdown(*store, symbols, *store->attribution, {});
  if (breakdown) owners.breakdown = std::make_shared<const Breakdown>(std::move(*breakdown));
  overview = std::move(static_cast<Overview&>(*store));
  return owners;
}

Result<ComponentRules> read_rules(const std::string& path) {
  if (path.empty()) return ComponentRules::built_in();
  if (auto fine = check_recording_path(path); !fine) return fine.error();
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  auto rules = ComponentRules::parse(text.str(), path);
  if (!rules) return rules.error();
  return rules->before(ComponentRules::built_in());
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

Result<void> check_recording_path(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return Error{fmt::format("{}: no such file", path)};
  if (error) return Error{fmt::format("{}: {}", path, error.message())};
  if (status.type() == std::filesystem::file_type::directory) {
    return Error{fmt::format("{}: is a directory; {}", path, recordings_in(path))};
  }
  if (status.type() != std::filesystem::file_type::regular) return Error{fmt::format("{}: not a regular file", path)};
  return {};
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
    if (auto fine = check_output({}, "", true, "a PNG file", "picture.png"); !fine) return fine.error();
  }
  return format.empty() ? "text" : format;
}

int write_output(const std::string& path, const std::string& bytes) {
  if (path.empty() || path == "-") return print(bytes);
  const auto written = write_file(path, bytes);
  return written ? kOk : fail(written.error().message);
}

}  // namespace tidemark::cli
