// tidemark history: observations of monitors, from the file of --history.
#include "publish/history/history.h"

#include <chrono>
#include <cmath>
#include <memory>

#include "base/units.h"
#include "cli/reading.h"
#include "query/results/machine_results.h"
#include "report/chart/chart.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct HistoryArguments {
  std::string file;
  std::string since;
  std::vector<std::string> devices;
  std::string format = "text";
  std::string output;
  std::string plot;
};

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int run(const HistoryArguments& arguments) {
  HistoryQuery query;
  query.until_ms = now_ms();
  query.devices = arguments.devices;
  if (const auto seconds = parse_time(arguments.since, kSecond)) {
    query.since_ms = query.until_ms - 1000 * std::llround(*seconds);
  }
  const auto history = read_history(arguments.file, query);
  if (!history) return fail(history.error().message);
  if (!arguments.plot.empty()) {
    const auto written =
        write_picture(arguments.plot, draw_usage(as_state(*history), ChartFormat::png, UsageTimes::of_day));
    if (!written) return fail(written.error().message);
  }
  if (arguments.format == "json") return write_output(arguments.output, to_json(*history));
  if (arguments.format == "csv") return write_output(arguments.output, to_csv(*history));
  return write_output(arguments.output, to_text(*history, detect_terminal(STDOUT_FILENO)));
}

}  // namespace

std::function<int()> setup_history(CommandLine& app) {
  auto arguments = std::make_shared<HistoryArguments>();
  app.add_option("FILE", arguments->file, "What a monitor keeps with --history FILE; it may still be written")
      ->required();
  app.add_option("--since", arguments->since, "Only what was seen in this time until now: 90s, 10min, 2h, 7d")
      ->time_span()
      ->show_default("all that is kept");
  app.add_option("--device", arguments->devices,
                 "Only this one: its number (0), its UUID, or cpu for the host's memory. Repeatable")
      ->one_at_a_time()
      ->type_name("DEVICE");
  add_format(app, arguments->format, "text|json|csv");
  app.add_option("-o,--output", arguments->output, "Write to this file instead of stdout")->type_name("FILE");
  app.add_option("--plot", arguments->plot,
                 "Also draw the use of each device over time, and a heat map of all, into this PNG file")
      ->type_name("FILE");
  app.footer(
      "Points are of one second; older than an hour, a day and a week, of 10 s, a minute and ten minutes, with the "
      "mean "
      "and the highest of that time.\n\n"
      "Examples:\n"
      "  tidemark oom --monitor --history gpu.db --keep-history 90d\n"
      "  tidemark history gpu.db --since 2h\n"
      "  tidemark history gpu.db --device 0 --plot night.png\n"
      "  tidemark history gpu.db --since 7d --format json | jq '.risk_changes'");
  return [arguments] { return run(*arguments); };
}

}  // namespace tidemark::cli
