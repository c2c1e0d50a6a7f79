#include "simulate/model_replay.h"

#include <cstddef>

namespace tidemark {

Result<SimulatedSettings> replay_with_model(const Store& store, const Requests& requests, const SettingList& settings,
                                            const std::vector<AllocatorModel::Limit>& limits) {
  const auto known = allocator_settings(settings);
  if (!known) return known.error();
  std::vector<AllocatorModel> models;
  models.reserve(limits.size());
  for (const AllocatorModel::Limit& limit : limits) models.emplace_back(*known, limit);
  std::vector<AllocatorState> peaks(models.size());
  std::vector<AllocatorModel::Handle> blocks(requests.slots);
  SimulatedSettings run;
  run.settings = settings_text(settings);
  visit_requests(store, requests, [&](const Request& request) {
    AllocatorModel& model = models[request.device];
    switch (request.kind) {
      case Request::Kind::allocate: {
        const auto block = model.allocate(request.size, request.stream, request.pool);
        if (!block) run.out_of_memory_ns = request.time_ns;
        blocks[request.slot] = block.value_or(0);
        return block.has_value();
      }
      case Request::Kind::free:
        model.free(blocks[request.slot]);
        break;
      case Request::Kind::failed:
        if (const auto block = model.allocate(request.size, request.stream, request.pool)) {
          ++run.passed_failures;
          model.free(*block);
        }
        break;
      case Request::Kind::pool_released:
        model.release_pool(request.pool);
        break;
      case Request::Kind::empty_cache:
        model.empty_cache();
        break;
      case Request::Kind::moment:
        peaks[request.device] = model.state();
        break;
    }
    return true;
  });
  for (std::size_t index = 0; index < models.size(); ++index) {
    run.devices.push_back(models[index].outcome());
    run.devices.back().at_peak = peaks[index];
  }
  return run;
}

}  // namespace tidemark
