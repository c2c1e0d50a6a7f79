#include "report/result_table/words.h"

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

std::string number_text(ResultKind kind, std::uint64_t number) {
  if (kind == ResultKind::bytes) return format_bytes(number);
  return kind == ResultKind::time_ns ? format_duration_ns(number) : format_count(number);
}

}  // namespace

std::string heading_of(const std::string& key) {
  std::string_view stem = key;
  for (const std::string_view unit : {"_bytes", "_ns"}) {
    if (stem.ends_with(unit)) stem.remove_suffix(unit.size());
  }
  std::string heading(stem);
  std::replace(heading.begin(), heading.end(), '_', ' ');
  return heading;
}

std::string value_text(ResultKind kind, const ResultValue& value) {
  struct Words {
    ResultKind kind;
    std::string operator()(std::monostate) const { return "n/a"; }
    std::string operator()(std::uint64_t number) const { return number_text(kind, number); }
    std::string operator()(double share) const { return share_text(share); }
    std::string operator()(const std::string& text) const { return shown(text); }
    std::string operator()(const Device& device) const { return to_string(device); }
    std::string operator()(StackId) const { return "n/a"; }
    std::string operator()(const NamedStack& stack) const { return stack_text_with_callers(stack); }
  };
  return std::visit(Words{kind}, value);
}

}  // namespace tidemark
