#include "report/model/json.h"

#include <utility>
#include <vector>

#include "report/common/json_parts.h"

namespace tidemark {
namespace {

Json groups_json(const std::vector<TensorGroup>& groups, const char* what) {
  Json rows = Json::array();
  for (const TensorGroup& group : groups) {
    rows.push_back({{what, group.name},
                    {"tensor_count", group.tensor_count},
                    {"parameters", group.parameters},
                    {"bytes", group.bytes}});
  }
  return rows;
}

Json adapters_json(const AdapterFacts& adapters) {
  Json modules = Json::array();
  for (const AdaptedModule& module : adapters.modules) {
    modules.push_back({{"module", module.module},
                       {"adapter", nullable_text(module.adapter)},
                       {"rank", nullable(module.rank)},
                       {"complete", module.has_both},
                       {"parameters", module.parameters},
                       {"bytes", module.bytes},
                       {"base_parameters", nullable(module.base_parameters)}});
  }
  Json ranks = Json::array();
  for (const auto& [rank, bytes] : adapters.bytes_by_rank) ranks.push_back({{"rank", rank}, {"bytes", bytes}});
  Json targets = Json::array();
  for (const auto& [name, count] : adapters.target_modules) targets.push_back({{"module", name}, {"count", count}});
  return {
      {"parameters", adapters.parameters}, {"bytes", adapters.bytes},   {"base_parameters", adapters.base_parameters},
      {"base_bytes", adapters.base_bytes}, {"ranks", std::move(ranks)}, {"target_modules", std::move(targets)},
      {"modules", std::move(modules)}};
}

Json config_json(const AdapterConfig& config) {
  return {{"rank", nullable(config.rank)},
          {"alpha", nullable(config.alpha)},
          {"target_modules", config.target_modules},
          {"base_model", nullable(config.base_model)}};
}

}  // namespace

std::string to_json(const ModelFacts& facts) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Json files = Json::array();
  for (const CheckpointFile& file : checkpoint.files) {
    files.push_back({{"file", file.path}, {"tensor_count", file.tensor_count}, {"bytes", file.bytes}});
  }
  Json blocks = Json::array();
  for (const RepeatedBlocks& run : facts.blocks) {
    blocks.push_back({{"first", run.first},
                      {"last", run.last},
                      {"count", run.count},
                      {"parameters", run.parameters},
                      {"bytes", run.bytes}});
  }
  Json oversized = Json::array();
  for (const std::size_t number : facts.oversized) {
    const StoredTensor& tensor = checkpoint.tensors[number];
    oversized.push_back({{"tensor", tensor.name}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
  }
  return print_json({{{"file", checkpoint.path},
                      {"tensor_count", facts.total.tensor_count},
                      {"parameters", facts.total.parameters},
                      {"bytes", facts.total.bytes},
                      {"files", std::move(files)},
                      {"modules", groups_json(facts.modules, "module")},
                      {"layers", groups_json(facts.layers, "layer")},
                      {"dtypes", groups_json(facts.dtypes, "dtype")},
                      {"shapes", groups_json(facts.shapes, "shape")},
                      {"repeated_blocks", std::move(blocks)},
                      {"oversized_threshold_bytes", facts.oversized_bytes},
                      {"oversized", std::move(oversized)},
                      {"lora", facts.adapters ? adapters_json(*facts.adapters) : Json(nullptr)},
                      {"adapter_config", checkpoint.adapter ? config_json(*checkpoint.adapter) : Json(nullptr)},
                      {"metadata", checkpoint.metadata}}});
}

}  // namespace tidemark
