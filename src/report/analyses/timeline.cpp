#include "analyze/timeline.h"

#include "analyze/call_site_layers.h"
#include "report/analyses/analysis.h"
#include "report/chart/chart.h"
#include "report/text/csv.h"

namespace tidemark {

Analysis timeline_analysis() {
  AnalysisParts<Timeline, Store> parts;
  parts.info = {"timeline",
                "Allocated and reserved memory over time; also as PNG and SVG",
                "",
                {{"by", AnalysisOption::Kind::word, "device|call-site",
                  "Show the allocated memory of each device as a whole, or by call site", "device"},
                 {"points", AnalysisOption::Kind::count, "N",
                  "Maximum number of points for each device; extremes are always kept",
                  std::to_string(TimelineOptions().points), 8, 1'000'000}},
                false,
                {"run.tide", "run.tide -o timeline.png", "run.tide --by call-site -o call_sites.png",
                 "run.rank*.tide --plot ranks.svg", "run.tide --format csv --points 500 > timeline.csv"}};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Timeline> {
    auto timeline = analyze_timeline(store, symbols, {options.device, options.count("points")});
    if (timeline && options.word("by") == "call-site") add_call_sites(*timeline, store, symbols);
    return timeline;
  };
  parts.formats = {{"csv", [](const std::vector<Timeline>& results) -> Result<std::string> { return to_csv(results); }},
                   {"png",
                    [](const std::vector<Timeline>& results) -> Result<std::string> {
                      return draw_chart(results, ChartFormat::png);
                    }},
                   {"svg", [](const std::vector<Timeline>& results) -> Result<std::string> {
                      return draw_chart(results, ChartFormat::svg);
                    }}};
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
