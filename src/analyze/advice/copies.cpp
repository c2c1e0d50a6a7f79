// Copies of the model's tensors: of a checkpoint that is saved, and what FSDP gathers of all ranks.
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

/// A module whose parameters FSDP gathers, in one forward pass.
struct GatheredUnit {
  std::vector<BlockId> gathered;
  std::uint64_t used_until = 0;  ///< by the forward pass
};

/// The units that a module is in, or is: those whose path its own begins with.
class Units {
 public:
  explicit Units(const Subject& subject) : modules_(subject.attribution.modules) {
    for (const BlockId block : subject.blocks) {
      const Owner& owner = subject.owner(block);
      if (!subject.is_copy(block, Making::gathered_parameter) || !owner.module.valid()) continue;
      const std::string& path = modules_[owner.module.value].path;
      if (!layer_of(path).empty()) units_[path];
    }
  }

  template <typename Visit>
  void visit_around(ModulePathId module, const Visit& visit) {
    std::string path = modules_[module.value].path;
    while (!path.empty() && !units_.empty()) {
      if (const auto unit = units_.find(path); unit != units_.end()) visit(unit->first, unit->second);
      const std::size_t dot = path.rfind('.');
      path.resize(dot == std::string::npos ? 0 : dot);
    }
  }

 private:
  const std::vector<ModulePath>& modules_;
  std::map<std::string, GatheredUnit> units_;
};

}  // namespace

std::vector<EarlierFree> checkpoint_copies(const Subject& subject) {
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    if (subject.is_copy(block, Making::copy)) frees.push_back(never_there(subject.store, block));
  }
  return frees;
}

// With reshard_after_forward a unit's parameters are away from the end of its forward pass to its backward pass. The
// outermost unit keeps its own in between, for its backward pass begins at once.
std::vector<EarlierFree> gathered_parameters(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  Units units(subject);
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    if (!owner.module.valid() || owner.phase == Phase::optimizer) continue;
    const std::uint64_t birth = blocks.birth_change[block.value];
    const bool is_gathered = subject.is_copy(block, Making::gathered_parameter);
    units.visit_around(owner.module, [&](const std::string& path, GatheredUnit& unit) {
      if (owner.phase == Phase::forward) {
        unit.used_until = birth + 1;
        if (is_gathered && subject.attribution.modules[owner.module.value].path == path) unit.gathered.push_back(block);
        return;
      }
      if (owner.phase == Phase::other || owner.phase == Phase::data) return;
      for (const BlockId held : unit.gathered) {
        if (blocks.death_change[held.value] > birth) frees.push_back({held, unit.used_until, birth});
      }
      unit.gathered.clear();
    });
  }
  return frees;
}

}  // namespace tidemark::advice
