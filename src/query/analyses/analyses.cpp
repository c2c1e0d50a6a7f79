#include "query/analyses/analysis.h"

namespace tidemark {

// An analysis NAME is the function NAME_analysis() in its own file: query/analyses/NAME.cpp if it has its own result
// type, analyze/NAME.cpp if its result is a table. The macros declare the function and register its result.
#define ADD_RESULT(name)             \
  extern Analysis name##_analysis(); \
  list.push_back(name##_analysis())
#define ADD_TABLE(name)                   \
  extern TableAnalysis name##_analysis(); \
  list.push_back(make_analysis(name##_analysis()))

const std::vector<Analysis>& analyses() {
  static const std::vector<Analysis> kAnalyses = [] {
    std::vector<Analysis> list;
    ADD_RESULT(summary);
    ADD_RESULT(breakdown);
    ADD_RESULT(table);
    ADD_RESULT(tree);
    ADD_RESULT(timeline);
    ADD_RESULT(temporary);
    ADD_RESULT(patterns);
    ADD_RESULT(fragmentation);
    ADD_RESULT(leaks);
    ADD_RESULT(ledger);
    ADD_RESULT(explain);
    return list;
  }();
  return kAnalyses;
}

Analysis make_analysis(TableAnalysis table) {
  AnalysisParts<ResultTable, Store> parts;
  parts.info = {table.name, table.help, table.about, std::move(table.options), table.takes_moment, {}};
  parts.info.options.push_back(top_option(table.top, "Rows to list for each device; 0 = all"));
  parts.info.examples = {"run.tide", "snapshot.pickle --device cuda:0 --top 0 --format csv"};
  parts.analyze = table.analyze;
  Analysis analysis = make_analysis(std::move(parts));
  analysis.table = table.analyze;
  return analysis;
}

}  // namespace tidemark
