// What may be done about reserved memory that is in no tensor, each with what was measured and speaks for it.
// `tidemark simulate` replays a recording with such settings: before that they are worth a try, no more. Only a replay
// speaks for max_split_size_mb and garbage_collection_threshold: the sizes of blocks do not tell whether the first
// saves memory or wastes more, and the second has an effect only in a process with a limit, which recordings do not
// say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/fragmentation/unused_memory.h"
#include "analyze/plan/simulation.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

enum class FragmentationAdviceKind : std::uint8_t {
  empty_cache,          ///< torch.cuda.empty_cache() after a peak that did not come back
  expandable_segments,  ///< blocks of many sizes: segments that grow instead of ones that are too small
  search,               ///< nothing of this speaks for one setting
  settings,             ///< under which a replay reserved less
};
inline constexpr EnumName<FragmentationAdviceKind> kFragmentationAdviceNames[] = {
    {FragmentationAdviceKind::empty_cache, "empty_cache"},
    {FragmentationAdviceKind::expandable_segments, "expandable_segments"},
    {FragmentationAdviceKind::search, "search"},
    {FragmentationAdviceKind::settings, "settings"}};
[[nodiscard]] constexpr std::string_view name_of(FragmentationAdviceKind kind) {
  return name_in(kFragmentationAdviceNames, kind);
}

/// Sizes are bytes.
struct FragmentationAdvice {
  FragmentationAdviceKind kind = FragmentationAdviceKind::search;
  std::uint64_t bytes = 0;     ///< UnusedMemory::idle: what it may save at most; settings: what it saved
  std::uint64_t sizes = 0;     ///< expandable_segments: different ones of blocks of more than 1 MiB
  std::uint64_t blocks = 0;    ///< of more than 1 MiB
  std::uint64_t reserved = 0;  ///< settings: the peak of the replay with the recorded ones
  std::string settings = {};   ///< settings: as in PYTORCH_CUDA_ALLOC_CONF
};

/// Whether there is reason for advice: a tenth of what is reserved is idle, or unused memory grows and reaches the
/// limit of the device.
[[nodiscard]] bool is_fragmented(const UnusedMemory& unused);

/// None where it is not. What is likely to help most comes first. Settings that are known to be set are left out.
[[nodiscard]] std::vector<FragmentationAdvice> find_fragmentation_advice(const Store& store, std::size_t device,
                                                                         const UnusedMemory& unused);

/// Puts what a replay found in place of settings that are worth a try: the best ones if they save enough, else none.
/// Nothing where the replay with the recorded settings is not the recorded run, to 5% of the peak reserved. `device`:
/// of the recording.
void cite_simulation(const Simulation& simulation, Device device, std::vector<FragmentationAdvice>& advice);

}  // namespace tidemark
