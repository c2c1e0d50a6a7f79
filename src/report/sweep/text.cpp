#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analyze/sweep/sweep.h"
#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "query/words/sweep.h"
#include "report/common/columns.h"

namespace tidemark {
namespace {

std::string trial_peak_text(const SweepRow& row, std::optional<std::uint64_t> TrialResult::*measured,
                            std::optional<std::uint64_t> Prediction::*predicted) {
  if (row.prediction && *row.prediction.*predicted) return "~" + format_bytes(*(*row.prediction.*predicted));
  return row.result ? trial_bytes_text(*row.result, *row.result.*measured) : "n/a";
}

// The peaks of the GPU with a complete trial, the first one of several.
const SweepRow& shown_row(const std::vector<const SweepRow*>& same) {
  const auto found = std::find_if(same.begin(), same.end(), [](const SweepRow* row) { return row->measured(); });
  return found == same.end() ? *same.front() : **found;
}

std::string table_text(const Sweep& sweep, const Terminal& terminal) {
  std::vector<std::string> headings;
  for (const VariedArgument& argument : sweep.arguments) headings.push_back(argument.name);
  headings.insert(headings.end(), {"peak allocated", "peak reserved"});
  for (const SweptGpu& gpu : sweep.gpus) headings.push_back(shown(gpu.name));
  headings.emplace_back("");
  Columns columns(headings);
  const std::size_t each = sweep.gpus.empty() ? 0 : sweep.rows.size() / sweep.gpus.size();
  for (std::size_t index = 0; index < each; ++index) {
    std::vector<const SweepRow*> same;
    for (std::size_t gpu = 0; gpu < sweep.gpus.size(); ++gpu) same.push_back(&sweep.rows[gpu * each + index]);
    const SweepRow& first = shown_row(same);
    std::vector<std::string> cells;
    for (const std::string& value : first.values) cells.push_back(shown(value, 40));
    cells.push_back(trial_peak_text(first, &TrialResult::peak_allocated_bytes, &Prediction::peak_allocated_bytes));
    cells.push_back(trial_peak_text(first, &TrialResult::peak_reserved_bytes, &Prediction::peak_reserved_bytes));
    std::string failure;
    for (const SweepRow* row : same) {
      cells.push_back(fits_text(*row));
      if (row->result && !row->result->fits) failure = shown(row->result->failure);
    }
    cells.push_back(failure);
    columns.add(cells);
  }
  return columns.text(terminal, 2);
}

std::string law_lines(const Sweep& sweep, std::string_view what, const std::optional<Law>& law) {
  if (!law) return fmt::format("  {:<15} n/a: too few trials that fit\n", what);
  std::string text;
  for (const std::string& line : law_text(sweep, *law)) {
    text += fmt::format("  {:<15} {}\n", text.empty() ? what : std::string_view(), line);
  }
  return text + fmt::format("  {:<15} error: {}\n", "", law_error_text(*law));
}

}  // namespace

std::string to_text(const Sweep& sweep, const Terminal& terminal) {
  std::size_t done = 0;
  std::size_t failed = 0;
  bool predicted = false;
  for (const SweepRow& row : sweep.rows) {
    if (row.result) ++done;
    if (row.result && !row.result->fits) ++failed;
    predicted = predicted || row.prediction;
  }
  std::string title =
      fmt::format("{} of {} configurations were tried", format_count(done), format_count(sweep.rows.size()));
  if (failed != 0) title += fmt::format(", {} failed", format_count(failed));
  std::string text = paint(terminal, Tone::heading, title) + "\n\n" + table_text(sweep, terminal);
  if (predicted) text += "  ~ predicted by the law\n";
  text += "\n" + paint(terminal, Tone::heading, "Law") + "\n";
  text += law_lines(sweep, "peak allocated", sweep.allocated);
  text += law_lines(sweep, "peak reserved", sweep.reserved);
  if (sweep.by_category.empty()) return text;
  text += "\n" + paint(terminal, Tone::heading, "Law of what holds the peak of allocated memory") + "\n";
  for (const CategoryLaw& of : sweep.by_category) text += law_lines(sweep, category_text(of.category), of.law);
  return text;
}

}  // namespace tidemark
