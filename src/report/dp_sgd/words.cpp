#include "report/dp_sgd/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "query/words/printable.h"
#include "query/words/sweep.h"

namespace tidemark {

std::string configuration_name(std::size_t row) {
  return fmt::format("config {}", row + 1);
}

std::string configuration_words(const Sweep& sweep, std::size_t row) {
  const std::string words = configuration_text(sweep, sweep.rows[row]);
  return sweep.gpus.size() == 1 ? words : shown(sweep.gpus[sweep.rows[row].gpu].name) + " " + words;
}

std::string kind_words(const std::string& kind) {
  if (kind == kPerSampleGradients) return "per-sample gradients";
  std::string words = kind;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace tidemark
