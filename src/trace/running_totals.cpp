#include "trace/running_totals.h"

#include <utility>

#include "trace/record_fields.h"

namespace tidemark {

std::vector<std::uint8_t> encode_totals(const RunningTotals& totals) {
  std::vector<std::uint8_t> payload;
  FieldWriter(payload).field(totals);
  return payload;
}

std::optional<RunningTotals> decode_totals(std::span<const std::uint8_t> payload) {
  RunningTotals totals;
  FieldReader fields(payload);
  fields.field(totals);
  return fields.ok() ? std::optional(std::move(totals)) : std::nullopt;
}

}  // namespace tidemark
