#include "analyze/fragmentation/fragmentation.h"

#include <memory>

#include "cli/picture.h"
#include "report/chart/chart.h"

namespace tidemark::cli {
namespace {

constexpr const char* kFormats = "text|json|png|svg";

struct Options : PictureOptions {
  std::size_t top = FragmentationOptions().top;
};

Result<std::string> render(const std::vector<Fragmentation>& results, const std::string& format) {
  if (format == "png") return draw_segment_map(results, ChartFormat::png);
  if (format == "svg") return draw_segment_map(results, ChartFormat::svg);
  if (format == "json") return to_json(results);
  return join_texts(results, false);
}

int run(const Options& options) {
  const auto format = output_format(options, kFormats);
  if (!format) return fail(format.error().message);
  FragmentationOptions what;
  what.device = options.only_device();
  what.top = options.top;
  const auto results =
      analyze_files<Fragmentation>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
        const auto at = options.moment(store);
        if (!at) return Result<Fragmentation>(at.error());
        what.at = *at;
        return analyze_fragmentation(store, symbols, what);
      });
  if (!results) return fail(results.error().message);
  const auto bytes = render(*results, *format);
  if (!bytes) return fail(bytes.error().message);
  return write_output(options.output, *bytes);
}

}  // namespace

std::function<int()> setup_fragmentation(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_picture_format(app, *options, kFormats);
  add_moment(app, *options);
  app.add_option("--top", options->top, "How many segments and stacks to list for each device; 0 = all")
      ->type_name("N");
  app.footer(
      "Examples:\n"
      "  tidemark fragmentation snapshot.pickle\n"
      "  tidemark fragmentation snapshot.pickle --at end --top 0\n"
      "  tidemark fragmentation snapshot.pickle -o segments.png\n"
      "  tidemark fragmentation snapshot.pickle --format json | jq '.devices[0].at_peak_reserved'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
