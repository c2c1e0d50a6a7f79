#include "analyze/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "cli/reading.h"
#include "report/chart.h"
#include "report/csv.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::string output;
  std::size_t points = 2000;
  bool format_given = false;
};

// The format that a file's name asks for, or "" when it says nothing.
std::string format_of(const std::string& path) {
  static constexpr std::array<std::string_view, 4> kFormats = {"csv", "json", "png", "svg"};
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".txt") return "text";
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(), [&](std::string_view format) {
    return extension == fmt::format(".{}", format);
  });
  return found == kFormats.end() ? "" : std::string(*found);
}

int write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return fail(fmt::format("{}: cannot be created: {}", path, std::strerror(errno)));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed) return kOk;
  return fail(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

Result<std::string> render(const std::vector<Timeline>& timelines, const std::string& format) {
  if (format == "png") return draw_chart(timelines, ChartFormat::png);
  if (format == "svg") return draw_chart(timelines, ChartFormat::svg);
  if (format == "json") return to_json(timelines);
  if (format == "csv") return to_csv(timelines);
  return join_texts(timelines, false);
}

int run(const Options& options) {
  std::string format = options.format;
  if (!options.output.empty() && !options.format_given) {
    format = format_of(options.output);
    if (format.empty()) {
      return fail(fmt::format("{}: the name must end in .png, .svg, .csv, .json or .txt, or --format say what to write",
                              options.output));
    }
  }
  if (format == "png" && options.output.empty() && isatty(STDOUT_FILENO) != 0) {
    return fail("a PNG does not belong on a terminal: name a file with -o timeline.png");
  }
  const auto timelines = analyze_files<Timeline>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    return analyze_timeline(store, symbols, {options.only_device(), options.points});
  });
  if (!timelines) return fail(timelines.error().message);
  const auto bytes = render(*timelines, format);
  if (!bytes) return fail(bytes.error().message);
  return options.output.empty() ? print(*bytes) : write_file(options.output, *bytes);
}

}  // namespace

std::function<int()> setup_timeline(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json|csv|png|svg");
  app.add_option("-o,--output,--plot", options->output, "Write to this file, in the format of its ending")
      ->type_name("FILE");
  app.add_option("--points", options->points, "At most so many points for each device; extremes are always kept")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{8}, std::size_t{1'000'000}));
  app.footer(
      "Examples:\n"
      "  tidemark timeline run.tide\n"
      "  tidemark timeline run.tide -o timeline.png\n"
      "  tidemark timeline run.rank*.tide --plot ranks.svg\n"
      "  tidemark timeline run.tide --format csv --points 500 > timeline.csv");
  return [options, &app] {
    options->format_given = app.count("--format") != 0;
    return run(*options);
  };
}

}  // namespace tidemark::cli
