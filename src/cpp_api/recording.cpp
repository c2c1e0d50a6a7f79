#include "query/recording.h"

#include <fmt/format.h>
#include <tidemark/recording.h>

#include <algorithm>
#include <utility>

#include "cpp_api/results.h"
#include "query/analyses/analysis.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
namespace {

const Analysis& analysis_named(const std::string& name) {
  const auto& all = tidemark::analyses();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Analysis& one) { return one.name == name; });
  if (found == all.end()) throw v1::Error(fmt::format("there is no analysis {}; analyses() lists them", name));
  return *found;
}

template <typename Parts>
const std::shared_ptr<tidemark::Recording>& recording_of(const std::unique_ptr<Parts>& parts) {
  if (!parts) throw v1::Error("this recording was moved to another object: use that one");
  return parts->recording;
}

}  // namespace

struct Recording::Parts {
  std::shared_ptr<tidemark::Recording> recording;
};

Recording::Recording(const std::string& path)
    : parts_(std::make_unique<Parts>(Parts{value_or_throw(tidemark::Recording::open(path, {}))})) {}

Recording::~Recording() = default;
Recording::Recording(Recording&& other) noexcept = default;
Recording& Recording::operator=(Recording&& other) noexcept = default;

RecordedProgram Recording::program() const {
  const std::shared_ptr<tidemark::Recording>& recording = recording_of(parts_);
  const SampledOverview& overview = recording->overview();
  const ProcessInfo& process = overview.definitions.process;
  return {recording->path(), process.command_line, process.pid, overview.event_count, overview.end_ns};
}

std::vector<DeviceMemory> Recording::devices() const {
  std::vector<DeviceMemory> devices;
  for (const DeviceSummary& summary : recording_of(parts_)->overview().devices) {
    DeviceMemory& device = devices.emplace_back();
    device.device = to_string(summary.device);
    device.allocation_count = summary.allocation_count;
    device.free_count = summary.free_count;
    device.total_allocated_bytes = summary.total_bytes_allocated;
    device.peak_allocated_bytes = summary.peak_allocated_bytes;
    device.peak_at_ns = summary.peak_allocated_at_ns;
    device.peak_reserved_bytes = summary.peak_reserved_bytes;
    device.peak_reserved_at_ns = summary.peak_reserved_at_ns;
    device.end_allocated_bytes = summary.live_allocated_bytes;
    device.end_block_count = summary.live_count;
    device.end_reserved_bytes = summary.end_reserved_bytes;
    device.out_of_memory_count = summary.out_of_memory_count;
  }
  return devices;
}

std::string Recording::analyze(const std::string& name, const std::map<std::string, std::string>& options) const {
  const Analysis& analysis = analysis_named(name);
  std::vector<std::pair<std::string, std::string>> given(options.begin(), options.end());
  for (const auto& [option, value] : given) {
    if (!has_option(analysis, option)) throw v1::Error(fmt::format("{} has no option {}", name, option));
  }
  use_own_program();
  AnalysisOptions chosen = value_or_throw(choose_options(analysis, given));
  const std::vector<std::shared_ptr<tidemark::Recording>> recordings = {recording_of(parts_)};
  const auto run = value_or_throw(run_analysis(analysis, recordings, std::move(chosen)));
  return value_or_throw(run->json());
}

std::vector<std::string> analyses() {
  std::vector<std::string> names;
  for (const Analysis& analysis : tidemark::analyses()) names.push_back(analysis.name);
  return names;
}

}  // namespace v1
}  // namespace tidemark
