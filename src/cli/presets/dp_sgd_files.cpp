#include "cli/presets/dp_sgd_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/timeline/timeline.h"
#include "base/output_file.h"
#include "import/open.h"
#include "query/results/results.h"
#include "report/chart/chart.h"
#include "report/common/csv.h"
#include "report/common/text.h"
#include "store/symbols.h"
#include "sweep/dp_sgd.h"

namespace tidemark::cli {
namespace {

DpSgdSweep with_reports(const Sweep& sweep, const std::string& model, const std::string& folder) {
  DpSgdSweep result{sweep, model, {}};
  for (const SweepRow& row : sweep.rows) {
    std::optional<DpSgdReport>& report = result.reports.emplace_back();
    if (!row.measured() || row.folder.empty()) continue;
    if (auto found = read_dp_sgd(folder + "/" + row.folder); found) report = std::move(*found);
  }
  return result;
}

// Of the recordings of a trial, one for each rank; none where it has none.
Result<std::optional<std::string>> timeline_picture(const std::string& folder, ChartFormat format) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tide") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Timeline> timelines;
  for (const std::string& path : paths) {
    const auto recording = open_store(path);
    if (!recording) return recording.error();
    Symbols symbols(recording->definitions);
    auto timeline = analyze_timeline(*recording, symbols, {});
    if (!timeline) return timeline.error();
    timelines.push_back(std::move(*timeline));
  }
  if (timelines.empty()) return std::optional<std::string>();
  auto picture = draw_chart(timelines, format);
  if (!picture) return picture.error();
  return std::optional(std::move(*picture));
}

Result<void> write_timelines(const Sweep& sweep, const std::string& folder, const std::string& plot,
                             ChartFormat format) {
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    if (!sweep.rows[row].result || sweep.rows[row].folder.empty()) continue;
    const auto picture = timeline_picture(folder + "/" + sweep.rows[row].folder, format);
    if (!picture) return picture.error();
    if (!*picture) continue;
    const std::string path = fmt::format("{}/memory_timeline_config_{}.{}", folder, row + 1, plot);
    if (auto written = write_file(path, **picture); !written) return written;
  }
  return {};
}

Result<void> write_pictures(const DpSgdSweep& result, const std::string& folder, const std::string& plot) {
  const ChartFormat format = plot == "svg" ? ChartFormat::svg : ChartFormat::png;
  const auto components = draw_dp_sgd_components(result, format);
  if (!components) return components.error();
  const auto phases = draw_dp_sgd_phases(result, format);
  if (!phases) return phases.error();
  for (const auto& [name, bytes] :
       {std::pair("detailed_memory_analysis", &*components), std::pair("operation_level_breakdown", &*phases)}) {
    if (auto written = write_file(fmt::format("{}/{}.{}", folder, name, plot), *bytes); !written) return written;
  }
  return write_timelines(result.sweep, folder, plot, format);
}

}  // namespace

Result<std::string> write_dp_sgd_files(const Sweep& sweep, const std::string& model, const std::string& folder,
                                       const std::string& plot) {
  const DpSgdSweep result = with_reports(sweep, model, folder);
  for (const auto& [name, text] : {std::pair("memory_profile_results.json", to_json(result)),
                                   std::pair("detailed_memory_results.json", to_json(DpSgdComponents{&result})),
                                   std::pair("memory_profile_summary.csv", to_csv(result))}) {
    if (auto written = write_file(folder + "/" + name, text); !written) return written.error();
  }
  if (plot != "none") {
    if (auto written = write_pictures(result, folder, plot); !written) return written.error();
  }
  return to_text(result, detect_terminal(STDOUT_FILENO));
}

}  // namespace tidemark::cli
