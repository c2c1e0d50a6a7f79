#include "analyze/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "cli/picture.h"
#include "report/html/html.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::string output;
};

Result<void> check_output(const Options& options) {
  if (options.output == "-" || options.output.empty()) {
    if (isatty(STDOUT_FILENO) == 0) return {};
    return Error{"a page does not belong on a terminal: name a file with -o report.html"};
  }
  for (const std::string& file : options.files) {
    std::error_code error;  // a file that is not there yet is no other one
    if (!std::filesystem::equivalent(file, options.output, error)) continue;
    return Error{fmt::format("{}: is a file to read; choose another name with -o", options.output)};
  }
  return {};
}

// Many recordings share the room that a page has.
ReportOptions options_for(const Options& options) {
  constexpr std::size_t kInFull = 4;
  ReportOptions report;
  report.device = options.only_device();
  const std::size_t times = std::max<std::size_t>(1, options.files.size() / kInFull);
  report.points = std::max<std::size_t>(100, report.points / times);
  report.rows = std::max<std::size_t>(5, report.rows / times);
  return report;
}

int run(const Options& options) {
  if (auto fine = check_output(options); !fine) return fail(fine.error().message);
  const ReportOptions what = options_for(options);
  std::vector<Report> reports;
  const auto read = read_files(options.files, open_store, [&](const Store& store, Symbols& symbols) -> Result<void> {
    auto report = analyze_report(store, symbols, what);
    if (!report) return report.error();
    reports.push_back(std::move(*report));
    return {};
  });
  if (!read) return fail(read.error().message);
  const auto page = to_html(std::move(reports));
  if (!page) return fail(page.error().message);
  return write_output(options.output, *page);
}

}  // namespace

std::function<int()> setup_report(CommandLine& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  app.add_option("-o,--output", options->output, "Write to this file; - is stdout, as is a pipe without this option")
      ->type_name("FILE");
  app.footer(
      "The page is one file that loads nothing: send it, print it, open it in any browser.\n"
      "\n"
      "Examples:\n"
      "  tidemark report run.tide -o report.html\n"
      "  tidemark report snapshot.pickle --device cuda:0 -o report.html\n"
      "  tidemark report run.rank*.tide -o ranks.html");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
