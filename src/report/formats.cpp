#include "report/formats.h"

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include "analyze/usage/ranks.h"
#include "query/words/recording_text.h"
#include "report/chart/chart.h"
#include "report/common/csv.h"
#include "report/common/text.h"

namespace tidemark {
namespace {

// A format beside text and JSON.
template <typename R>
struct Format {
  std::string name;
  std::function<Result<std::string>(const std::vector<R>& results)> write;
};

struct Writer {
  std::vector<std::string> formats;
  std::function<Result<std::string>(const AnalysisRun& run, const std::string& format, const Terminal& terminal)> write;
};

// Text of one result as it is, of several under a heading each.
template <typename R>
std::string join_texts(const std::vector<R>& results, bool filters_lists, const Terminal& terminal) {
  std::string text;
  for (const R& result : results) {
    if (!text.empty()) text += "\n";
    if (results.size() > 1) text += paint(terminal, Tone::heading, recording_title(result.recording)) + "\n";
    text += chosen_blocks_text(result.recording, filters_lists);
    text += to_text(result, terminal);
  }
  return text;
}

// Several processes begin with a table of all. Details only of the requested rank, or of two at most.
Result<std::string> summaries_text(const std::vector<Summary>& summaries, const Terminal& terminal) {
  constexpr std::size_t kDetailed = 2;
  const auto job = compare_summaries(summaries, kDetailed);
  if (!job) return job.error();
  return job->ranks ? to_text(*job->ranks, job->summaries, terminal) : to_text(*job->summaries.front(), terminal);
}

template <typename R>
Writer writer(std::vector<Format<R>> formats, bool filters_lists = false) {
  Writer made;
  made.formats = {"text", "json"};
  for (const Format<R>& format : formats) made.formats.push_back(format.name);
  made.write = [formats = std::move(formats), filters_lists](const AnalysisRun& run, const std::string& format,
                                                             const Terminal& terminal) -> Result<std::string> {
    const std::vector<R>& results = dynamic_cast<const ResultsOf<R>&>(run).results();
    for (const Format<R>& own : formats) {
      if (own.name == format) return own.write(results);
    }
    if constexpr (std::is_same_v<R, Summary>) {
      static_cast<void>(filters_lists);
      return summaries_text(results, terminal);
    } else {
      return join_texts(results, filters_lists, terminal);
    }
  };
  return made;
}

template <typename R>
Format<R> csv() {
  return {"csv", [](const std::vector<R>& results) -> Result<std::string> { return to_csv(results); }};
}

template <typename R, typename Draw>
std::vector<Format<R>> pictures(const Draw& draw, std::vector<Format<R>> formats = {}) {
  for (const char* name : {"png", "svg"}) {
    formats.push_back(
        {name, [draw, format = chart_format(name)](const std::vector<R>& results) { return draw(results, format); }});
  }
  return formats;
}

// Analyses whose result is not a table; one line each.
const Writer* writer_of(const Analysis& analysis) {
  static const std::map<std::string, Writer> kWriters = {
      {"summary", writer<Summary>({})},
      {"breakdown", writer<Breakdown>(pictures<Breakdown>(draw_breakdown, {csv<Breakdown>()}))},
      {"table", writer<Table>({csv<Table>()})},
      {"tree", writer<Tree>({})},
      {"timeline", writer<Timeline>(pictures<Timeline>(draw_chart, {csv<Timeline>()}))},
      {"temporary", writer<Temporary>({csv<Temporary>()})},
      {"patterns", writer<Patterns>({})},
      {"fragmentation", writer<Fragmentation>(pictures<Fragmentation>(draw_segment_map), true)},
      {"leaks", writer<Leaks>({})},
      {"ledger", writer<Ledger>(pictures<Ledger>(draw_ledger))},
      {"explain", writer<Explanation>({}, true)},
  };
  static const Writer kTableWriter = writer<ResultTable>({csv<ResultTable>()});
  if (analysis.table) return &kTableWriter;
  const auto found = kWriters.find(analysis.name);
  return found == kWriters.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<std::string> formats_of(const Analysis& analysis) {
  const Writer* writer = writer_of(analysis);
  return writer == nullptr ? std::vector<std::string>{"json"} : writer->formats;
}

Result<std::string> write_results(const Analysis& analysis, const AnalysisRun& run, const std::string& format,
                                  const Terminal& terminal) {
  if (format == "json") return run.json();
  const Writer* writer = writer_of(analysis);
  if (writer == nullptr) return Error{analysis.name + " has no format " + format};
  return writer->write(run, format, terminal);
}

}  // namespace tidemark
