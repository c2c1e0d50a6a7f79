#include <string>
#include <utility>

#include "base/units.h"
#include "query/words/explain.h"
#include "report/advice/words.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::vector<std::string> cells_of(const Advice& advice) {
  return {format_bytes(advice.avoidable_peak_bytes), std::string(name_in(kConfidenceNames, advice.known_as)),
          std::string(name_of(advice.kind))};
}

FittedText place_of(const Advice& advice) {
  return [&advice](std::size_t width) { return advice_place(advice, width); };
}

}  // namespace

std::string advice_text(const std::vector<Advice>& list, const Terminal& terminal) {
  if (list.empty()) return {};
  Columns columns({"avoidable peak", "known as", "advice", "where"});
  for (const Advice& advice : list) columns.add(cells_of(advice), place_of(advice));
  return columns.text(terminal, 2) + "  `tidemark patterns` says what to change.\n";
}

std::string advice_text(const std::vector<OomAdvice>& list, const Terminal& terminal) {
  if (list.empty()) return {};
  Columns columns({"held then", "known as", "advice", "request would fit", "where"});
  for (const OomAdvice& advice : list) {
    std::vector<std::string> cells = cells_of(advice);
    cells.emplace_back(fits_text(advice));
    columns.add(std::move(cells), place_of(advice));
  }
  return columns.text(terminal, 2) + "  `tidemark patterns` says what to change.\n";
}

}  // namespace tidemark
