#include "report/common/json.h"

#include <utility>

#include "analyze/sweep/fit.h"
#include "report/sweep/json_parts.h"

namespace tidemark {

std::string to_json(const Fit& fit) {
  Json object = {{"name", fit.name},
                 {"option", fit.option},
                 {"largest", nullable(fit.largest())},
                 {"low", fit.range.low},
                 {"high", fit.range.high},
                 {"step", fit.range.step},
                 {"gpu", fit.gpu},
                 {"memory_bytes", fit.memory_bytes},
                 {"margin_share", fit.margin_share},
                 {"limit_bytes", fit.limit_bytes},
                 {"monotone", fit.monotone()},
                 {"trials", Json::array()}};
  for (const FitTrial& trial : fit.trials) {
    Json row = {{"value", trial.value}};
    row.update(trial_json(trial.result));
    object["trials"].push_back(std::move(row));
  }
  return print_json({Json{{"fit", std::move(object)}}});
}

}  // namespace tidemark
