#include "analyze/timeline.h"

#include <memory>

#include "cli/picture.h"
#include "report/chart/chart.h"
#include "report/text/csv.h"

namespace tidemark::cli {
namespace {

constexpr const char* kFormats = "text|json|csv|png|svg";

struct Options : PictureOptions {
  std::size_t points = 2000;
};

Result<std::string> render(const std::vector<Timeline>& timelines, const std::string& format) {
  if (format == "png") return draw_chart(timelines, ChartFormat::png);
  if (format == "svg") return draw_chart(timelines, ChartFormat::svg);
  if (format == "json") return to_json(timelines);
  if (format == "csv") return to_csv(timelines);
  return join_texts(timelines, false);
}

int run(const Options& options) {
  const auto format = output_format(options, kFormats);
  if (!format) return fail(format.error().message);
  const auto timelines = analyze_files<Timeline>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    return analyze_timeline(store, symbols, {options.only_device(), options.points});
  });
  if (!timelines) return fail(timelines.error().message);
  const auto bytes = render(*timelines, *format);
  if (!bytes) return fail(bytes.error().message);
  return write_output(options.output, *bytes);
}

}  // namespace

std::function<int()> setup_timeline(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_picture_format(app, *options, kFormats);
  app.add_option("--points", options->points, "At most so many points for each device; extremes are always kept")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{8}, std::size_t{1'000'000}));
  app.footer(
      "Examples:\n"
      "  tidemark timeline run.tide\n"
      "  tidemark timeline run.tide -o timeline.png\n"
      "  tidemark timeline run.rank*.tide --plot ranks.svg\n"
      "  tidemark timeline run.tide --format csv --points 500 > timeline.csv");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
