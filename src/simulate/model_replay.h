// Requests replayed by Tidemark's model of the allocator.
#pragma once

#include <vector>

#include "analyze/plan/simulation.h"
#include "base/result.h"
#include "simulate/allocator_model.h"
#include "simulate/requests.h"
#include "simulate/settings_text.h"

namespace tidemark {

/// `limits` by device. An error where the model does not know a setting.
Result<SimulatedSettings> replay_with_model(const Store& store, const Requests& requests, const SettingList& settings,
                                            const std::vector<AllocatorModel::Limit>& limits);

}  // namespace tidemark
