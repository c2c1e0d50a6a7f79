#include <fmt/format.h>

#include "analyze/sweep/sweep.h"
#include "report/text/csv.h"
#include "report/text/csv_field.h"

namespace tidemark {

std::string to_csv(const Sweep& sweep) {
  std::string text = "gpu";
  for (const VariedArgument& argument : sweep.arguments) text += "," + csv_field(argument.name);
  text +=
      ",fits,peak_allocated_bytes,peak_reserved_bytes,device_used_bytes,out_of_memory,predicted_fits,"
      "predicted_peak_allocated_bytes,predicted_peak_reserved_bytes,failure,duration_ns,host_bytes,folder\n";
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
    text += "," + csv_field(row.folder) + "\n";
  }
  return text;
}

}  // namespace tidemark
