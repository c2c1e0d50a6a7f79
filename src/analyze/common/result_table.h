// A result that is a table: for analyses that do not need a result type of their own. Reports write every such table as
// text, JSON, CSV and a section of the page, by the kinds of its values (report/…/result_table.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analyze/common/analysis_options.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"
#include "trace/event.h"

namespace tidemark {

/// Kind of a value, which determines its formatting. In brackets: the alternative of ResultValue.
enum class ResultKind : std::uint8_t {
  bytes,    ///< (std::uint64_t)
  count,    ///< (std::uint64_t)
  time_ns,  ///< after the start, or a duration (std::uint64_t)
  share,    ///< of a whole, 0 to 1 (double)
  text,     ///< perhaps hostile (std::string)
  device,   ///< (Device)
  stack,    ///< (StackId up to finish_table(), then NamedStack)
};

/// std::monostate: unknown.
using ResultValue = std::variant<std::monostate, std::uint64_t, double, std::string, Device, StackId, NamedStack>;

/// Converts nullopt to an unknown value.
template <typename T>
ResultValue known_or_not(const std::optional<T>& value) {
  return value ? ResultValue(*value) : ResultValue();
}

/// A value with a name, about a device or about the whole recording.
struct ResultFact {
  std::string key;  ///< "peak_allocated_bytes": JSON has it as it is, headings are made from it ("peak allocated")
  ResultKind kind = ResultKind::bytes;
  ResultValue value;
};

struct ResultColumn {
  std::string key;  ///< key in JSON
  ResultKind kind = ResultKind::bytes;
  bool summed = false;  ///< bytes and counts: the rows that are not listed are added up
};

using ResultRow = std::vector<ResultValue>;  ///< by column

/// Rows of one device, or of all devices.
struct ResultSection {
  std::optional<Device> device;
  std::vector<ResultFact> facts;
  std::vector<ResultRow> rows;           ///< the most important first
  std::uint64_t other_rows = 0;          ///< not listed
  std::vector<std::uint64_t> other_sum;  ///< sum of the other rows by column; 0 for columns without sums
};

struct ResultTable {
  RecordingInfo recording;
  std::string name;  ///< of the analysis: "lifetimes"
  std::vector<ResultFact> facts;
  std::vector<ResultColumn> columns;  ///< text and stacks last: that column is as wide as there is room
  std::vector<ResultSection> sections;
};

/// Keeps the first `kept` rows; the others are counted in other_rows and other_sum.
void keep_rows(ResultSection& section, const std::vector<ResultColumn>& columns, std::size_t kept);

/// Finishes an analysis: keeps `top` rows of each section (0 = all), names their stacks, and describes the recording.
[[nodiscard]] ResultTable finish_table(ResultTable table, const Overview& overview, Symbols& symbols, std::size_t top);

/// An analysis with such a table as its result. Defined in its own file, and listed in query/analyses/analyses.cpp.
struct TableAnalysis {
  std::string name;                       ///< of the command, and its key in the page's data: a lower-case word
  std::string help;                       ///< one line: what the analysis shows
  std::string about;                      ///< sentences for --help and the page: meaning of rows and columns
  std::size_t top = 20;                   ///< default of --top: number of rows for each device
  bool takes_moment = false;              ///< whether AnalysisOptions::at means something
  std::vector<AnalysisOption> options{};  ///< beside --top
  /// Fails if the requested device is not in the recording, or if the required data is missing. Ends with
  /// finish_table(…, options.count("top")).
  Result<ResultTable> (*analyze)(const Store& store, Symbols& symbols, const AnalysisOptions& options) = nullptr;
};

}  // namespace tidemark
