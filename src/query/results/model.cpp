#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "query/results/common.h"
#include "query/results/machine_results.h"

namespace tidemark {
namespace {

// Grouping of tensors: the type of a group, and the key of its name.
struct ByModule {
  static constexpr const char* kType = "ModelModule";
  static constexpr const char* kKey = "module";
};
struct ByLayer {
  static constexpr const char* kType = "ModelLayer";
  static constexpr const char* kKey = "layer";
};
struct ByDtype {
  static constexpr const char* kType = "ModelDtype";
  static constexpr const char* kKey = "dtype";
};
struct ByShape {
  static constexpr const char* kType = "ModelShape";
  static constexpr const char* kKey = "shape";
};

}  // namespace

template <typename Visitor, typename By>
void describe(Visitor& v, const TensorGroup& group, const By& /*tag*/) {
  v.type(By::kType, "Tensors that have this in common.");
  v.field(By::kKey, group.name);
  v.field("tensor_count", group.tensor_count);
  v.field("parameters", group.parameters);
  v.field("bytes", group.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const CheckpointFile& file) {
  v.type("ModelFile", "A safetensors file.");
  v.field("file", file.path);
  v.field("tensor_count", file.tensor_count);
  v.field("bytes", file.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const RepeatedBlocks& run) {
  v.type("RepeatedBlocks", "Blocks of the model that are alike.");
  v.field("first", run.first);
  v.field("last", run.last);
  v.field("count", run.count);
  v.field("parameters", run.parameters, "of each, as the next");
  v.field("bytes", run.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const StoredTensor& tensor) {
  v.type("OversizedTensor", "A large tensor.");
  v.field("tensor", tensor.name);
  v.field("shape", tensor.shape);
  v.field("bytes", tensor.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const AdaptedModule& module) {
  v.type("AdaptedModule", "A module with LoRA weights.");
  v.field("module", module.module);
  v.field("adapter", known_text(module.adapter));
  v.field("rank", module.rank);
  v.field("complete", module.has_both, "both A and B are there");
  v.field("parameters", module.parameters);
  v.field("bytes", module.bytes);
  v.field("base_parameters", module.base_parameters, "of the weight that is adapted, where it is in the files too");
}

namespace {

struct BytesOfRank {
  std::uint64_t rank = 0;
  std::uint64_t bytes = 0;
};
template <typename Visitor>
void describe(Visitor& v, const BytesOfRank& of) {
  v.type("BytesOfRank", "LoRA weights of one rank.");
  v.field("rank", of.rank);
  v.field("bytes", of.bytes);
}

struct TargetModule {
  std::string module;
  std::uint64_t count = 0;
};
template <typename Visitor>
void describe(Visitor& v, const TargetModule& target) {
  v.type("TargetModule", "Adapted modules of one name.");
  v.field("module", target.module, "last part of their paths");
  v.field("count", target.count);
}

template <typename Row, typename Map>
std::vector<Row> rows_of(const Map& map) {
  std::vector<Row> rows;
  for (const auto& [key, value] : map) rows.push_back({key, value});
  return rows;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const AdapterFacts& adapters) {
  v.type("LoraWeights", "LoRA weights, and what they are added to.");
  v.field("parameters", adapters.parameters);
  v.field("bytes", adapters.bytes);
  v.field("base_parameters", adapters.base_parameters, "of all else");
  v.field("base_bytes", adapters.base_bytes);
  v.field("ranks", rows_of<BytesOfRank>(adapters.bytes_by_rank));
  v.field("target_modules", rows_of<TargetModule>(adapters.target_modules));
  v.field("modules", adapters.modules);
}

template <typename Visitor>
void describe(Visitor& v, const AdapterConfig& config) {
  v.type("AdapterConfig", "What adapter_config.json says.");
  v.field("rank", config.rank);
  v.field("alpha", config.alpha);
  v.field("target_modules", config.target_modules);
  v.field("base_model", config.base_model);
}

template <typename Visitor>
void describe(Visitor& v, const ModelFacts& facts) {
  const Checkpoint& checkpoint = facts.checkpoint;
  std::vector<const StoredTensor*> oversized;
  for (const std::size_t number : facts.oversized) oversized.push_back(&checkpoint.tensors[number]);
  v.type("Model", "What a model's safetensors files take.");
  v.field("file", checkpoint.path);
  v.field("tensor_count", facts.total.tensor_count);
  v.field("parameters", facts.total.parameters);
  v.field("bytes", facts.total.bytes);
  v.field("files", checkpoint.files);
  v.field("modules", in(facts.modules, ByModule()), "each with all that is below it, parents before children");
  v.field("layers", in(facts.layers, ByLayer()), "they add up to the whole, as the next two do");
  v.field("dtypes", in(facts.dtypes, ByDtype()));
  v.field("shapes", in(facts.shapes, ByShape()));
  v.field("repeated_blocks", facts.blocks);
  v.field("oversized_threshold_bytes", facts.oversized_bytes, "--oversized");
  v.field("oversized", oversized, "largest first");
  v.field("lora", facts.adapters, "null: there is none");
  v.field("adapter_config", checkpoint.adapter, "null: there is none");
  v.field("metadata", checkpoint.metadata, R"(what the writer noted, by key, such as "format")");
}
TIDEMARK_DESCRIBED(ModelFacts);

}  // namespace tidemark
