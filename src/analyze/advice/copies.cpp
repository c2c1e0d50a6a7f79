// Copies of the model's tensors: of a saved or loaded checkpoint, of a model, and parameters gathered by FSDP.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

/// A module with parameters gathered by FSDP, in one forward pass.
struct GatheredUnit {
  ModulePathId module;
  std::vector<BlockId> gathered;
  std::uint64_t used_until = 0;  ///< by the forward pass
};

/// The units that contain, or are, a module: those with a prefix of its path.
class Units {
 public:
  explicit Units(const Subject& subject) : modules_(subject.attribution.modules) {
    for (const BlockId block : subject.blocks) {
      const Owner& owner = subject.owner(block);
      if (!subject.is_copy(block, AllocationOrigin::gathered_parameter) || !owner.module.valid()) continue;
      const std::string& path = modules_[owner.module.value].path;
      if (!layer_of(path).empty()) units_[path].module = owner.module;
    }
    around_.resize(units_.empty() ? 0 : modules_.size());
    for (std::size_t module = 0; module < around_.size(); ++module) {
      std::string path = modules_[module].path;
      while (!path.empty()) {
        if (const auto unit = units_.find(path); unit != units_.end()) around_[module].push_back(&unit->second);
        const std::size_t dot = path.rfind('.');
        path.resize(dot == std::string::npos ? 0 : dot);
      }
    }
  }

  [[nodiscard]] bool empty() const { return units_.empty(); }
  [[nodiscard]] const std::vector<GatheredUnit*>& around(ModulePathId module) const { return around_[module.value]; }

 private:
  const std::vector<ModulePath>& modules_;
  std::map<std::string, GatheredUnit> units_;
  std::vector<std::vector<GatheredUnit*>> around_;  // by ModulePathId
};

std::vector<EarlierFree> copies_made_by(const Subject& subject, AllocationOrigin made_by) {
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    if (subject.is_copy(block, made_by)) frees.push_back(never_there(subject.store, block));
  }
  return frees;
}

}  // namespace

std::vector<EarlierFree> checkpoint_copies(const Subject& subject) {
  return copies_made_by(subject, AllocationOrigin::copy);
}

std::vector<EarlierFree> loaded_checkpoint(const Subject& subject) {
  return copies_made_by(subject, AllocationOrigin::loaded_copy);
}

std::vector<EarlierFree> model_copies(const Subject& subject) {
  return copies_made_by(subject, AllocationOrigin::model_copy);
}

// With reshard_after_forward a unit's parameters are absent from the end of its forward pass to its backward pass. The
// outermost unit keeps its own in between, because its backward pass begins at once.
std::vector<EarlierFree> gathered_parameters(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  const Units units(subject);
  std::vector<EarlierFree> frees;
  if (units.empty()) return frees;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    const bool in_pass =
        owner.phase == Phase::forward || owner.phase == Phase::backward || owner.phase == Phase::recomputation;
    if (!owner.module.valid() || !in_pass) continue;
    const std::uint64_t birth = blocks.birth_change[block.value];
    const bool is_gathered = subject.is_copy(block, AllocationOrigin::gathered_parameter);
    for (GatheredUnit* unit : units.around(owner.module)) {
      if (owner.phase == Phase::forward) {
        unit->used_until = birth + 1;
        if (is_gathered && owner.module == unit->module) unit->gathered.push_back(block);
        continue;
      }
      for (const BlockId held : unit->gathered) {
        if (blocks.death_change[held.value] > birth) frees.push_back({held, unit->used_until, birth});
      }
      unit->gathered.clear();
    }
  }
  return frees;
}

}  // namespace tidemark::advice
