#include "report/common/json.h"

#include <utility>

#include "analyze/sweep/sweep.h"
#include "report/sweep/json_parts.h"
#include "report/sweep/words.h"

namespace tidemark {
namespace {

Json law_json(const Sweep& sweep, const std::optional<Law>& law) {
  if (!law) return nullptr;
  const std::vector<std::size_t> numeric = sweep.numeric();
  Json terms = Json::array();
  for (const LawTerm& term : law->terms()) {
    Json powers = Json::object();
    for (std::size_t index = 0; index < term.powers.size(); ++index) {
      if (term.powers[index] != 0) powers[sweep.arguments[numeric[index]].name] = term.powers[index];
    }
    Json coefficients = Json::array();
    for (const std::optional<double>& coefficient : term.coefficients) coefficients.push_back(nullable(coefficient));
    terms.push_back({{"powers", std::move(powers)}, {"coefficients", std::move(coefficients)}});
  }
  return {{"text", law_text(sweep, *law)},
          {"terms", std::move(terms)},
          {"trial_count", law->points()},
          {"median_error_share", law->median_error_share()},
          {"largest_error_share", law->largest_error_share()}};
}

Json categories_json(const Sweep& sweep) {
  if (sweep.by_category.empty()) return nullptr;
  Json laws = Json::array();
  for (const CategoryLaw& of : sweep.by_category) {
    Json law = {{"category", name_in(kCategoryNames, of.category)}};
    law.update(law_json(sweep, of.law));
    laws.push_back(std::move(law));
  }
  return laws;
}

Json held_json(const std::optional<TrialResult>& result) {
  if (!result || result->categories.empty()) return nullptr;
  Json held = Json::object();
  for (const HeldByCategory& part : result->categories) {
    held[std::string(name_in(kCategoryNames, part.category))] = part.bytes;
  }
  return held;
}

Json row_json(const Sweep& sweep, const SweepRow& row) {
  Json object = {
      {"gpu", sweep.gpus[row.gpu].name}, {"values", values_json(sweep, row)}, {"group", sweep.group_of(row)}};
  object["result"] = row.result ? trial_json(*row.result) : Json(nullptr);
  object["categories"] = held_json(row.result);
  object["prediction"] = nullptr;
  if (row.prediction) {
    object["prediction"] = {{"fits", nullable(row.prediction->fits)},
                            {"peak_allocated_bytes", nullable(row.prediction->peak_allocated_bytes)},
                            {"peak_reserved_bytes", nullable(row.prediction->peak_reserved_bytes)}};
  }
  object["folder"] = nullable_text(row.folder);
  return object;
}

}  // namespace

std::string to_json(const Sweep& sweep) {
  Json object = {{"program", sweep.program}, {"arguments", Json::array()}, {"gpus", Json::array()}};
  for (const VariedArgument& argument : sweep.arguments) {
    object["arguments"].push_back({{"name", argument.name}, {"option", argument.option}, {"values", argument.values}});
  }
  for (const SweptGpu& gpu : sweep.gpus) {
    object["gpus"].push_back({{"name", gpu.name},
                              {"memory_bytes", nullable(gpu.memory_bytes)},
                              {"context_bytes", nullable(gpu.context_bytes)}});
  }
  object["groups"] = sweep.groups();
  object["rows"] = Json::array();
  for (const SweepRow& row : sweep.rows) object["rows"].push_back(row_json(sweep, row));
  object["laws"] = {{"peak_allocated_bytes", law_json(sweep, sweep.allocated)},
                    {"peak_reserved_bytes", law_json(sweep, sweep.reserved)},
                    {"by_category", categories_json(sweep)}};
  return print_json({std::move(object)});
}

}  // namespace tidemark
