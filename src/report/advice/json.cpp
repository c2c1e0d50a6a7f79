#include "report/common/json_objects.h"

namespace tidemark {

Json advice_modules_json(const Advice& advice, const char* key) {
  Json modules = Json::array();
  for (const AdviceModule& module : advice.modules) {
    modules.push_back({{"module", module.path}, {key, module.bytes}});
  }
  return modules;
}

Json advice_json(const std::vector<Advice>& list) {
  Json advice = Json::array();
  for (const Advice& one : list) {
    advice.push_back({{"kind", name_of(one.kind)},
                      {"avoidable_peak_bytes", one.avoidable_peak_bytes},
                      {"known_as", name_in(kConfidenceNames, one.known_as)},
                      {"held_at_peak_bytes", one.peak_bytes},
                      {"held_at_peak_block_count", one.peak_blocks},
                      {"modules", advice_modules_json(one, "held_at_peak_bytes")},
                      {"stack", stack_json(one.stack)}});
  }
  return advice;
}

}  // namespace tidemark
