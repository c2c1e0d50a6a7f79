#include "report/patterns/words.h"

#include <fmt/format.h>

#include "analyze/common/advice.h"
#include "base/units.h"

namespace tidemark {

std::string avoidable_peak_text(std::uint64_t saving, std::uint64_t peak) {
  if (saving == 0) return "none (the peak stays the same)";
  const char* remark = is_worth_advice(saving, peak) ? "" : " (less than 1 MiB or 1% of the peak)";
  return fmt::format("up to {}{}", format_bytes(saving), remark);
}

}  // namespace tidemark
