#include "report/common/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/sweep.h"

namespace tidemark {
namespace {

// Only categories with memory in some trial have columns.
std::vector<Category> categories_of(const Sweep& sweep) {
  std::vector<Category> found;
  for (const EnumName<Category>& entry : kCategoryNames) {
    const bool some = std::any_of(sweep.rows.begin(), sweep.rows.end(), [&](const SweepRow& row) {
      return row.result && std::any_of(row.result->categories.begin(), row.result->categories.end(),
                                       [&](const HeldByCategory& held) { return held.category == entry.value; });
    });
    if (some) found.push_back(entry.value);
  }
  return found;
}

std::string category_fields(const std::vector<Category>& categories, const TrialResult& result) {
  std::string text;
  for (const Category category : categories) {
    std::optional<std::uint64_t> bytes;
    if (!result.categories.empty()) bytes = 0;
    for (const HeldByCategory& held : result.categories) {
      if (held.category == category) bytes = held.bytes;
    }
    text += number_field(bytes);
  }
  return text;
}

}  // namespace

std::string to_csv(const Sweep& sweep) {
  std::string text = "gpu";
  for (const VariedArgument& argument : sweep.arguments) text += "," + csv_field(argument.name);
  text +=
      ",fits,peak_allocated_bytes,peak_reserved_bytes,device_used_bytes,out_of_memory,predicted_fits,"
      "predicted_peak_allocated_bytes,predicted_peak_reserved_bytes,failure,duration_ns,host_bytes,folder";
  const std::vector<Category> categories = categories_of(sweep);
  for (const Category category : categories) text += fmt::format(",{}_bytes", name_in(kCategoryNames, category));
  text += "\n";
  for (const SweepRow& row : sweep.rows) {
    text += csv_field(sweep.gpus[row.gpu].name);
    for (const std::string& value : row.values) text += "," + (number_of(value) ? value : csv_field(value));
    const TrialResult result = row.result.value_or(TrialResult());
    text += yes_field(result.fits) + number_field(result.peak_allocated_bytes);
    text += number_field(result.peak_reserved_bytes) + number_field(result.device_used_bytes);
    text += yes_field(row.result ? std::optional(result.out_of_memory) : std::nullopt);
    text += yes_field(row.prediction ? row.prediction->fits : std::nullopt);
    text += number_field(row.prediction ? row.prediction->peak_allocated_bytes : std::nullopt);
    text += number_field(row.prediction ? row.prediction->peak_reserved_bytes : std::nullopt);
    text += "," + csv_field(result.failure);
    text += number_field(row.result ? std::optional(result.duration_ns) : std::nullopt);
    text += number_field(row.result ? std::optional(result.host_bytes) : std::nullopt);
    text += "," + csv_field(row.folder) + category_fields(categories, result) + "\n";
  }
  return text;
}

}  // namespace tidemark
