#include "analyze/fragmentation/fragmentation_advice.h"

#include <algorithm>

#include "allocator/rules.h"
#include "analyze/common/advice.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kMuch = 0.1;            // of what is reserved
constexpr double kMaxError = 0.05;       // of the recorded peak reserved, that a replay misses it by
constexpr std::uint64_t kManySizes = 8;  // blocks of fewer find a free one of their own size again

class AdviceFinder {
 public:
  AdviceFinder(const Store& store, std::size_t device, const UnusedMemory& unused) : store_(store), unused_(unused) {
    const Blocks& blocks = store.blocks;
    for (std::size_t block = 0; block < blocks.count(); ++block) {
      if (blocks.device[block] != device || blocks.size[block] <= pytorch::kSmallSize) continue;
      if (store.live_changes[blocks.birth_change[block]].time_ns >= unused.begin_ns)
        sizes_.push_back(blocks.size[block]);
    }
    std::ranges::sort(sizes_);
  }

  std::vector<FragmentationAdvice> find() {
    if (unused_.pattern == UnusedPattern::held_peak) {
      add(FragmentationAdviceKind::empty_cache);
    } else if (!is_expandable()) {
      expandable();
    }
    if (found_.empty()) add(FragmentationAdviceKind::search);
    return found_;
  }

 private:
  FragmentationAdvice& add(FragmentationAdviceKind kind) {
    FragmentationAdvice& advice = found_.emplace_back();
    advice.kind = kind;
    advice.bytes = unused_.idle;
    return advice;
  }

  [[nodiscard]] const std::optional<pytorch::AllocatorSettings>& settings() const {
    return store_.source.allocator_settings;
  }
  [[nodiscard]] bool is_expandable() const { return settings() && settings()->expandable_segments.value_or(false); }

  void expandable() {
    std::vector<std::uint64_t> each = sizes_;
    each.erase(std::unique(each.begin(), each.end()), each.end());
    const std::uint64_t different = each.size();
    if (different < kManySizes) return;
    FragmentationAdvice& advice = add(FragmentationAdviceKind::expandable_segments);
    advice.sizes = different;
    advice.blocks = sizes_.size();
  }

  const Store& store_;
  const UnusedMemory& unused_;
  std::vector<std::uint64_t> sizes_;  // of blocks in the large pool, ascending
  std::vector<FragmentationAdvice> found_;
};

}  // namespace

bool is_fragmented(const UnusedMemory& unused) {
  if (!unused.known()) return false;
  if (unused.grows() && unused.seconds_to_limit) return true;
  return unused.idle_share() >= kMuch && is_worth_advice(unused.idle, unused.reserved);
}

std::vector<FragmentationAdvice> find_fragmentation_advice(const Store& store, std::size_t device,
                                                           const UnusedMemory& unused) {
  return is_fragmented(unused) ? AdviceFinder(store, device, unused).find() : std::vector<FragmentationAdvice>();
}

void cite_simulation(const Simulation& simulation, Device device, std::vector<FragmentationAdvice>& advice) {
  const auto found = std::ranges::find(simulation.devices, device, &SimulatedDevice::device);
  if (advice.empty() || found == simulation.devices.end() || simulation.runs.empty()) return;
  const auto index = static_cast<std::size_t>(found - simulation.devices.begin());
  const std::uint64_t recorded = found->recorded.peak_reserved;
  const std::uint64_t reserved = simulation.check.devices[index].peak_reserved;
  const std::uint64_t error = std::max(recorded, reserved) - std::min(recorded, reserved);
  if (static_cast<double>(error) > kMaxError * static_cast<double>(recorded)) return;
  std::erase_if(advice,
                [](const FragmentationAdvice& each) { return each.kind != FragmentationAdviceKind::empty_cache; });
  const SimulatedSettings& best = simulation.runs.front();
  const auto saving = simulation.saving(best, index);
  if (!saving || *saving <= 0 || !is_worth_advice(static_cast<std::uint64_t>(*saving), reserved)) return;
  FragmentationAdvice& settings = advice.emplace_back();
  settings.kind = FragmentationAdviceKind::settings;
  settings.bytes = static_cast<std::uint64_t>(*saving);
  settings.reserved = reserved;
  settings.settings = best.settings;
}

}  // namespace tidemark
