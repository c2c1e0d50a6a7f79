#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/explain.h"
#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

// The place is shortened before the change is.
FittedText change_of(const Advice& advice) {
  return [&advice](std::size_t width) {
    constexpr std::size_t kLeastPlace = 16;
    constexpr std::size_t kBetween = 2;  // ": "
    if (width == 0) return advice_change_at(advice, 0);
    const std::size_t change = display_width(advice_change(advice)) + kBetween;
    const std::size_t place =
        std::clamp(width - std::min(width, change), kLeastPlace, std::max(kLeastPlace, width / 2));
    return fit_beginning(advice_change_at(advice, place), width);
  };
}

}  // namespace

std::string advice_text(const std::vector<Advice>& list, std::size_t most, const Terminal& terminal) {
  if (list.empty()) return {};
  const std::size_t shown = most == 0 ? list.size() : std::min(most, list.size());
  Columns columns({"saves", "change"});
  for (std::size_t n = 0; n < shown; ++n) columns.add({saving_text(list[n])}, change_of(list[n]));
  if (shown < list.size()) columns.add({"", fmt::format("({} more)", format_count(list.size() - shown))});
  return columns.text(terminal, 2);
}

std::string advice_text(const std::vector<OomAdvice>& list, const Terminal& terminal) {
  if (list.empty()) return {};
  Columns columns({"size at failure", "enough", "change"});
  for (const OomAdvice& advice : list) columns.add({saving_text(advice), fits_text(advice)}, change_of(advice));
  return columns.text(terminal, 2);
}

}  // namespace tidemark
