#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/output_file.h"
#include "base/standard_streams.h"
#include "cli/reading.h"
#include "export/format.h"
#include "report/common/terminal.h"
#include "report/common/text_parts.h"

namespace tidemark::cli {
namespace {

struct ExportArguments : ReadingOptions {
  std::string file;
  std::string to;
  bool at_given = false;
  bool stacks = false;
  OwnerArguments owners;
};

// Of --to, which was checked; otherwise of the output's ending. Null: neither names one.
const ExportFormat* format_of(const ExportArguments& options) {
  for (const ExportFormat& format : export_formats()) {
    const std::string_view suffix = format.suffix;  // ".speedscope.json", ".blocks.csv"
    const bool ends_so = options.output.ends_with(suffix) || options.output.ends_with(suffix.substr(suffix.rfind('.')));
    const bool only_gzip = suffix.ends_with(".gz") && !options.output.ends_with(suffix);
    if (options.to.empty() ? ends_so && !only_gzip : options.to == format.name) return &format;
  }
  return nullptr;
}

// "run.speedscope.json" for run.tide.
std::string usual_name(const std::string& file, const ExportFormat& format) {
  const std::string name = std::filesystem::path(file).filename();
  return name.substr(0, name.find('.', 1)) + format.suffix;
}

Result<void> export_store(const AttributedStore& store, const ExportArguments& options, const ExportFormat& format) {
  AnalysisOptions chosen({});
  chosen.filter = options.owners.filter;
  chosen.attribution = store.attribution;
  const auto at = find_moment(store, options.at);
  if (!at) return at.error();
  const auto filter = chosen.chosen_blocks(store);
  if (!filter) return filter.error();
  Symbols symbols(store.definitions);
  const auto tell = [](const std::string& remark) { write_stderr({remark, ".\n"}); };
  const auto write = [&](const ByteOutput& output) {
    const Progress progress = make_progress(options.file, "Exporting");
    return format.write(store, symbols,
                        {options.only_device(), *at, store.attribution.get(), tell, *filter, options.stacks}, output,
                        progress);
  };
  if (options.output.empty() || options.output == "-") {
    if (auto written = write(write_stdout); !written) return written;
    if (auto flushed = flush_stdout(); !flushed) return flushed;
  } else {
    auto file = OutputFile::create(options.output);
    if (!file) return file.error();
    std::uint64_t size = 0;
    auto written = write([&](std::string_view bytes) {
      size += bytes.size();
      return file->write(bytes);
    });
    if (!written) return written;
    if (auto committed = file->commit(); !committed) return committed;
    say_written(options.output, size);
  }
  write_stderr({quality_hint(describe_recording(store, symbols), detect_terminal(STDERR_FILENO))});
  return {};
}

int run(const ExportArguments& options) {
  const ExportFormat* const found = format_of(options);
  if (found == nullptr) {
    return fail(
        "name the format with --to, or by the ending of --output; for example: tidemark export run.tide -o blocks.csv");
  }
  const ExportFormat& format = *found;
  if (auto status = check_recording_path(options.file); !status) return fail(status.error().message);
  if (auto status = check_output({&options.file, 1}, options.output, format.binary,
                                 fmt::format("a file of the format {}", format.name), usual_name(options.file, format));
      !status) {
    return fail(status.error().message);
  }
  if (options.at_given && !format.one_moment) {
    return fail(fmt::format("--at: {} contains the whole run, not one point in time", format.name));
  }
  const auto rules = read_rules(options.owners.rules);
  if (!rules) return fail(rules.error().message);
  const auto store = open_attributed(options.file, make_progress(options.file), *rules);
  if (!store) return fail(store.error().message);
  const auto exported = export_store(*store, options, format);
  return exported ? kOk : fail(exported.error().message);
}

}  // namespace

std::function<int()> setup_export(CommandLine& app) {
  auto options = std::make_shared<ExportArguments>();
  app.add_option("FILE", options->file, "Recording or PyTorch memory snapshot")->required()->type_name("FILE");
  std::string names;
  std::string footer = "Formats:\n";
  for (const ExportFormat& format : export_formats()) {
    names += (names.empty() ? "" : "|") + std::string(format.name);
    footer += fmt::format("  {:<11} {}\n", format.name, format.description);
  }
  app.add_option("--to", options->to, "Format of the output")->one_of(names)->show_default("the ending of --output");
  add_output(app, options->output);
  add_device(app, options->device);
  add_moment(app, options->at);
  add_owners(app, options->owners);
  app.add_flag("--stacks", options->stacks, "With csv, also a column with all frames of each stack");
  app.footer(footer +
             "\nExamples:\n"
             "  tidemark export run.tide --to perfetto -o run.pftrace\n"
             "  tidemark export run.tide --to speedscope -o run.speedscope.json\n"
             "  tidemark export run.tide --to pprof --category activation -o activations.pb.gz\n"
             "  tidemark export snapshot.pickle --to csv --device cuda:0 | xz > blocks.csv.xz");
  return [options, &app] {
    options->at_given = app.given("--at");
    return run(*options);
  };
}

}  // namespace tidemark::cli
