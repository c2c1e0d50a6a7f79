#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/units.h"
#include "model/names.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "report/common/columns.h"
#include "report/common/csv.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxModelRows = 12;

std::string or_model(const std::string& module) {
  return module.empty() ? "(the model itself)" : shown(module);
}

std::vector<std::string> cells_of(std::uint64_t bytes, std::uint64_t parameters, std::string name) {
  return {format_bytes(bytes), format_count(parameters), std::move(name)};
}

/// "model.layers.0 to 31, 386.0 MiB each".
std::string blocks_text(const RepeatedBlocks& blocks) {
  const std::string last = blocks.last.substr(blocks.last.rfind('.') + 1);
  return fmt::format("{} to {}, {} each", shown(blocks.first), shown(last), format_bytes(blocks.bytes));
}

std::string titled(const char* title, const Columns& columns, const Terminal& terminal) {
  return "\n" + paint(terminal, Tone::heading, title) + "\n" + columns.text(terminal, 2);
}

std::string left_out(std::size_t all) {
  return all > kMaxModelRows ? fmt::format("  and {} more\n", format_count(all - kMaxModelRows)) : std::string();
}

/// Layers in the model's order, equal blocks as one.
std::string layers_text(const ModelFacts& facts, const Terminal& terminal) {
  std::unordered_map<std::string, const RepeatedBlocks*> runs;
  for (const RepeatedBlocks& blocks : facts.blocks) runs.emplace(blocks.first, &blocks);
  Columns columns({"bytes", "parameters", "layer"});
  std::size_t rows = 0;
  for (std::size_t number = 0; number < facts.layers.size(); ++rows) {
    const TensorGroup& layer = facts.layers[number];
    const auto run = runs.find(layer.name);
    if (run == runs.end()) {
      if (rows < kMaxModelRows) columns.add(cells_of(layer.bytes, layer.parameters, or_model(layer.name)));
      ++number;
      continue;
    }
    const RepeatedBlocks& blocks = *run->second;
    if (rows < kMaxModelRows) {
      columns.add(cells_of(blocks.bytes * blocks.count, blocks.parameters * blocks.count, blocks_text(blocks)));
    }
    number += static_cast<std::size_t>(blocks.count);
  }
  return titled("By layer", columns, terminal) + left_out(rows);
}

/// The largest first.
std::string groups_text(const char* title, const char* what, std::vector<TensorGroup> groups,
                        const Terminal& terminal) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const TensorGroup& left, const TensorGroup& right) { return left.bytes > right.bytes; });
  Columns columns({"bytes", "parameters", "tensors", what});
  for (std::size_t number = 0; number < std::min(groups.size(), kMaxModelRows); ++number) {
    const TensorGroup& group = groups[number];
    columns.add({format_bytes(group.bytes), format_count(group.parameters), format_count(group.tensor_count),
                 shown(group.name)});
  }
  return titled(title, columns, terminal) + left_out(groups.size());
}

/// Whether `inner` is below `outer`, or the same.
bool is_within(const std::string& inner, const std::string& outer) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

/// The tree of modules; of equal blocks only the first. A module with a single child shares a row with it.
class ModuleRows {
 public:
  ModuleRows(const ModelFacts& facts, std::size_t depth) : facts_(facts), depth_(depth) {
    for (const RepeatedBlocks& blocks : facts.blocks) {
      last_of_.emplace(blocks.first, blocks.last.substr(blocks.last.rfind('.') + 1));
      const std::size_t stem = blocks.first.rfind('.') + 1;  // 0 without a dot
      const std::uint64_t first = std::stoull(blocks.first.substr(stem));
      for (std::uint64_t block = 1; block < blocks.count; ++block) {
        repeated_.insert(blocks.first.substr(0, stem) + std::to_string(first + block));
      }
    }
  }

  std::string text(const Terminal& terminal) {
    Columns columns({"bytes", "parameters", "module"});
    std::size_t rows = 0;
    for (std::size_t number = 0; number < facts_.modules.size(); ++number) {
      const TensorGroup& module = facts_.modules[number];
      while (!above_.empty() && !is_within(module.name, above_.back())) above_.pop_back();
      if (above_.size() >= depth_ || repeated_.contains(layer_of_module(module.name)) || is_one_with_next(number))
        continue;
      if (rows++ < kMaxModules) columns.add(cells_of(module.bytes, module.parameters, label(module.name)));
      above_.push_back(module.name);
    }
    const std::string more = rows > kMaxModules ? fmt::format("  and {} more\n", format_count(rows - kMaxModules)) : "";
    return titled("By module", columns, terminal) + more;
  }

 private:
  static constexpr std::size_t kMaxModules = 50;

  [[nodiscard]] bool is_one_with_next(std::size_t number) const {
    const TensorGroup& module = facts_.modules[number];
    if (number + 1 == facts_.modules.size() || last_of_.contains(module.name)) return false;
    const TensorGroup& next = facts_.modules[number + 1];
    return next.tensor_count == module.tensor_count && is_within(next.name, module.name);
  }

  [[nodiscard]] std::string label(const std::string& name) const {
    const std::size_t begin = above_.empty() ? 0 : above_.back().size() + 1;
    const auto last = last_of_.find(name);
    return std::string(2 * above_.size(), ' ') + shown(name.substr(begin)) +
           (last == last_of_.end() ? std::string() : fmt::format(" (to {}: the same)", last->second));
  }

  const ModelFacts& facts_;
  std::size_t depth_;
  std::unordered_map<std::string, std::string> last_of_;
  std::unordered_set<std::string> repeated_;  // all but the first of equal blocks
  std::vector<std::string> above_;            // rows that the next one may be below
};

std::string oversized_text(const ModelFacts& facts, const Terminal& terminal) {
  if (facts.oversized.empty()) return {};
  Columns columns({"bytes", "shape", "tensor"});
  for (std::size_t number = 0; number < std::min(facts.oversized.size(), kMaxModelRows); ++number) {
    const StoredTensor& tensor = facts.checkpoint.tensors[facts.oversized[number]];
    columns.add({format_bytes(tensor.bytes), shape_text(tensor.shape), shown(tensor.name)});
  }
  return titled(fmt::format("Oversized ({} or more)", format_bytes(facts.oversized_bytes)).c_str(), columns, terminal) +
         left_out(facts.oversized.size());
}

std::string adapters_text(const ModelFacts& facts, const Terminal& terminal) {
  std::string text;
  if (facts.adapters) {
    const AdapterFacts& adapters = *facts.adapters;
    text += fact("adapters", fmt::format("{}, {} parameters in {} modules", format_bytes(adapters.bytes),
                                         format_count(adapters.parameters), format_count(adapters.modules.size())));
    if (adapters.base_parameters != 0) {
      const double share = static_cast<double>(adapters.parameters) / static_cast<double>(adapters.base_parameters);
      text += fact("base model",
                   fmt::format("{}, {} parameters: adapters have {:.3g}% of them", format_bytes(adapters.base_bytes),
                               format_count(adapters.base_parameters), 100 * share));
    }
    for (const auto& [rank, bytes] : adapters.bytes_by_rank) {
      text += fact("rank", fmt::format("{}: {}", rank, format_bytes(bytes)));
    }
    for (const auto& [module, count] : adapters.target_modules) {
      text += fact("adapts", fmt::format("{} ({})", shown(module), format_count(count)));
    }
    const auto halves = std::count_if(adapters.modules.begin(), adapters.modules.end(),
                                      [](const AdaptedModule& module) { return !module.has_both; });
    if (halves != 0) {
      text += fact("incomplete",
                   paint(terminal, Tone::warning,
                         fmt::format("{} without lora_A or lora_B", format_count(static_cast<std::uint64_t>(halves)))));
    }
  }
  if (facts.checkpoint.adapter) {
    const AdapterConfig& config = *facts.checkpoint.adapter;
    if (config.rank) text += fact("r", std::to_string(*config.rank) + " (adapter_config.json)");
    if (config.alpha) text += fact("lora_alpha", fmt::format("{:g} (adapter_config.json)", *config.alpha));
    if (config.base_model) text += fact("made for", shown(*config.base_model));
  }
  return text.empty() ? text : "\n" + paint(terminal, Tone::heading, "LoRA") + "\n" + text;
}

}  // namespace

std::string to_text(const ModelFacts& facts, std::size_t depth, const Terminal& terminal) {
  const Checkpoint& checkpoint = facts.checkpoint;
  std::string text = paint(terminal, Tone::heading, shown(checkpoint.path)) + "\n";
  text += fact("tensors", fmt::format("{} in {} file{}", format_count(facts.total.tensor_count),
                                      format_count(checkpoint.files.size()), checkpoint.files.size() == 1 ? "" : "s"));
  text += fact("parameters", format_count(facts.total.parameters) + " (with buffers: files do not tell them apart)");
  text += fact("size", exact_text(facts.total.bytes));
  if (facts.total.tensor_count == 0) return text;
  text += ModuleRows(facts, depth).text(terminal);
  text += layers_text(facts, terminal);
  text += groups_text("By type", "type", facts.dtypes, terminal);
  text += groups_text("By shape", "shape", facts.shapes, terminal);
  text += oversized_text(facts, terminal);
  return text + adapters_text(facts, terminal);
}

std::string to_csv(const ModelFacts& facts) {
  std::string text = "file,tensor,module,layer,dtype,shape,parameters,bytes\n";
  for (const StoredTensor& tensor : facts.checkpoint.tensors) {
    const std::string module = module_of(tensor.name);
    text += fmt::format("{},{},{},{},{},{},{},{}\n", csv_field(facts.checkpoint.files[tensor.file].path),
                        csv_field(tensor.name), csv_field(module), csv_field(layer_of_module(module)),
                        csv_field(tensor.dtype), csv_field(shape_text(tensor.shape)), tensor.elements, tensor.bytes);
  }
  return text;
}

}  // namespace tidemark
