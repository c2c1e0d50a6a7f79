// Settings worth trying on a recording.
#pragma once

#include <vector>

#include "simulate/requests.h"
#include "simulate/settings_text.h"

namespace tidemark {

/// Changes to the recorded settings, those that help most often first: expandable segments; max_split_size_mb around
/// the sizes of the large requests; steps of roundup_power2_divisions; garbage_collection_threshold where `limited`,
/// without which PyTorch does not collect.
[[nodiscard]] std::vector<SettingList> candidate_settings(const Store& store, const Requests& requests,
                                                          const SettingList& recorded, bool limited);

}  // namespace tidemark
