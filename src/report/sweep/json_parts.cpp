#include "report/sweep/json_parts.h"

namespace tidemark {

Json trial_json(const TrialResult& result) {
  return {{"fits", nullable(result.fits)},
          {"peak_allocated_bytes", nullable(result.peak_allocated_bytes)},
          {"peak_reserved_bytes", nullable(result.peak_reserved_bytes)},
          {"device_used_bytes", nullable(result.device_used_bytes)},
          {"memory_bytes", nullable(result.memory_bytes)},
          {"out_of_memory", result.out_of_memory},
          {"failure", nullable_text(result.failure)},
          {"duration_ns", result.duration_ns},
          {"host_bytes", result.host_bytes},
          {"uncertain", result.uncertain}};
}

Json values_json(const Sweep& sweep, const SweepRow& row) {
  Json values = Json::object();
  for (std::size_t index = 0; index < sweep.arguments.size(); ++index) {
    values[sweep.arguments[index].name] = row.values[index];
  }
  return values;
}

}  // namespace tidemark
