#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/standard_streams.h"
#include "cli/reading.h"
#include "query/words/printable.h"
#include "report/html/page_contents.h"

namespace tidemark::cli {
namespace {

struct ReportOptions : ReadingOptions {
  OwnerArguments owners;
  AnalysisOptions chosen{{rank_option()}};
};

// Many recordings share the room that a page has.
html::PageOptions options_for(const ReportOptions& options) {
  constexpr std::size_t kInFull = 4;
  html::PageOptions page;
  page.device = options.only_device();
  page.rank = options.chosen.given_count("rank");
  page.filter = options.owners.filter;
  const std::size_t shown = page.rank ? 1 : options.files.size();
  const std::size_t times = std::max<std::size_t>(1, shown / kInFull);
  page.points = std::max<std::size_t>(100, page.points / times);
  page.rows = std::max<std::size_t>(5, page.rows / times);
  return page;
}

// "run.html" for run.tide and run.pickle.xz, in the current folder; of several the first one's.
std::string usual_output(const std::string& file) {
  std::filesystem::path name = std::filesystem::path(file).filename();
  for (const char* packed : {".xz", ".gz", ".zst"}) {
    if (name.extension() == packed) name.replace_extension();
  }
  return name.replace_extension(".html").string();
}

int run(ReportOptions& options) {
  if (const auto chosen = choose_files(options.files); !chosen) return fail(chosen.error().message);
  if (options.output.empty()) options.output = usual_output(options.files.front());
  const auto status = check_output(options.files, options.output, true, "an HTML page", "report.html");
  if (!status) return fail(status.error().message);
  constexpr std::size_t kFew = 50;  // they fit, or are read in seconds
  const auto rules = read_rules(options.owners.rules);
  if (!rules) return fail(rules.error().message);
  const html::PageOptions what = options_for(options);
  std::vector<html::PageContents> pages;
  std::size_t bytes = 0;  // minimum size of the page: avoids reading thousands of recordings for a page that is too
                          // large
  const auto open = [&](const std::string& path, const Progress& progress) {
    return open_attributed(path, progress, *rules);
  };
  const auto read =
      read_files(options.files, open, [&](const AttributedStore& store, Symbols& symbols) -> Result<void> {
        auto contents = html::collect_page_contents(store, symbols, what, store.attribution.get());
        if (!contents) return contents.error();
        pages.push_back(std::move(*contents));
        if (options.files.size() > kFew) bytes += html::least_bytes(pages.back());
        if (bytes > kMaxHtmlBytes) return html::too_large_error(pages.size(), options.files.size());
        return {};
      });
  if (!read) return fail(read.error().message);
  const auto page = to_html(std::move(pages));
  if (!page) return fail(page.error().message);
  return write_output(options.output, *page, ": open it in a browser");
}

}  // namespace

std::function<int()> setup_report(CommandLine& app) {
  auto options = std::make_shared<ReportOptions>();
  add_reading(app, *options, {});
  add_option(app, rank_option(), options->chosen);
  add_owners(app, options->owners);
  app.add_option("-o,--output", options->output, "Output file; - is stdout")
      ->type_name("FILE")
      ->show_default("FILE.html in this folder");
  app.footer(
      "The page is one file that loads nothing else: it can be sent, printed and opened offline in any browser.\n"
      "\n"
      "Examples:\n"
      "  tidemark report run.tide                       # writes run.html\n"
      "  tidemark report snapshot.pickle --device cuda:0 -o report.html\n"
      "  tidemark report run.tide --module 'layers.3.*' --category activation -o layer3.html\n"
      "  tidemark report run.rank*.tide -o ranks.html\n"
      "  tidemark report run.rank*.tide --rank 3 -o rank3.html");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
