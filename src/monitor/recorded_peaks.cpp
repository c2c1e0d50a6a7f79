#include "monitor/recorded_peaks.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "analyze/common/moment.h"

namespace tidemark {
namespace {

// Limits the memory that a recording can make this class use.
constexpr std::size_t kMaxSampledDevices = 1024;
// Events are written at most this long after samples of their time: threads may be in the middle of writing theirs.
constexpr std::uint64_t kLateNs = 500'000'000;
// Recordings without events for this long, while others of their recorder have some, are not waited for.
constexpr std::uint64_t kSilentNs = 5'000'000'000;
// The driver's allocation unit: smaller blocks share memory that is taken already.
constexpr std::uint64_t kDriverUnit = std::uint64_t{2} << 20;

RecordedOwners& of_device(std::vector<RecordedOwners>& owners, const Device& device) {
  const auto found =
      std::find_if(owners.begin(), owners.end(), [&](const RecordedOwners& known) { return known.device == device; });
  if (found != owners.end()) return *found;
  RecordedOwners& added = owners.emplace_back();
  added.device = device;
  return added;
}

template <typename Sums, typename Kind>
void add(Sums& sums, Kind kind, std::uint64_t bytes) {
  auto& sum = sums[static_cast<std::size_t>(kind)];
  if (bytes > 0) sum = sum.value_or(0) + bytes;
}

template <typename Sums>
void clear(Sums& sums) {
  for (auto& sum : sums) {
    if (sum) sum = 0;
  }
}

}  // namespace

RecordedPeaks::Recording RecordedPeaks::begin(const std::string& recorder, const std::string& path,
                                              std::optional<std::uint64_t> started_ns) {
  Read& read = read_[next_];
  read.clock = started_ns ? recorder : recorder + '\n' + path;
  read.started_ns = started_ns.value_or(0);
  return next_++;
}

struct RecordedPeaks::Taker {
  RecordedPeaks& peaks;
  Recording recording;
  Read& read;

  void add(const Event& event) const { peaks.add(recording, read, event); }
  void add_sample(const SampleRecord& record) const { peaks.add(recording, read, record); }
};

void RecordedPeaks::add(Recording recording, const FollowedBatch& batch) {
  const auto read = read_.find(recording);
  if (read == read_.end()) return;
  const Taker taker{*this, recording, read->second};
  batch.deliver_to(taker);
}

void RecordedPeaks::report(Recording recording, const Read& read, const Held& held) {
  if (held.counts == nullptr) return;
  const std::uint64_t bytes = held.driver_bytes.value_or(held.reserved_bytes);
  held.counts->take(recording, read.read_ns, bytes, held.driver_bytes.value_or(held.allocated_bytes));
}

void RecordedPeaks::add(Recording recording, Read& read, const Event& event) {
  const std::uint64_t time_ns = read.started_ns + event.time_ns;
  const bool is_late = time_ns < read.read_ns;
  read.read_ns = std::max(read.read_ns, time_ns);
  const bool of_driver = event.device.type == DeviceType::cuda_driver;
  if (!of_driver && (!event.has_totals || is_driver_memory(event.device))) return;
  Held& held = read.held[event.device.index];
  if (is_late && held.counts != nullptr) held.counts->begin_anew(read.read_ns);
  if (!of_driver) {
    held.allocated_bytes = event.total_allocated;
    held.reserved_bytes = event.total_reserved;
  } else {
    // Until now, its memory was known by its allocator's reserved bytes.
    if (!held.driver_bytes && held.counts != nullptr) held.counts->begin_anew(read.read_ns);
    std::uint64_t& bytes = held.driver_bytes ? *held.driver_bytes : held.driver_bytes.emplace(0);
    const std::uint64_t size = event.size / kDriverUnit * kDriverUnit;
    bytes = held_after(event.kind, size, bytes);
  }
  report(recording, read, held);
}

void RecordedPeaks::add(Recording recording, Read& read, const SampleRecord& record) {
  const std::uint64_t time_ns = read.started_ns + time_of(record);
  if (const auto* device = std::get_if<SampledDevice>(&record)) {
    if (read.devices.size() == kMaxSampledDevices) return;
    Sampled& sampled = read.devices.emplace_back();
    sampled.uuid = device->uuid;
    if (device->cuda_index && *device->cuda_index <= 127) {
      sampled.index = static_cast<std::int8_t>(*device->cuda_index);
    }
    if (read.counts) connect(recording, read);
    return;
  }
  read.read_ns = std::max(read.read_ns, time_ns - std::min(time_ns, kLateNs));
  if (const auto* sample = std::get_if<DeviceSample>(&record)) {
    if (!sample->used_bytes || sample->device.value >= read.devices.size()) return;
    const Sampled& device = read.devices[sample->device.value];
    if (device.counts != nullptr) device.counts->sample(time_ns, *sample->used_bytes);
  } else if (const auto* list = std::get_if<DeviceProcessesSample>(&record)) {
    const bool lists = std::any_of(list->processes.begin(), list->processes.end(),
                                   [](const SampledProcess& process) { return process.kind == ProcessKind::recorded; });
    if (!lists || list->device.value >= read.devices.size()) return;
    Sampled& device = read.devices[list->device.value];
    if (std::exchange(device.lists_process, true) || !read.counts) return;
    connect(recording, read);
  } else if (const auto* call = std::get_if<SlowDriverCall>(&record)) {
    for (const Sampled& device : read.devices) {
      if (device.counts != nullptr) device.counts->doubt(time_ns - std::min(time_ns, call->duration_ns), time_ns);
    }
  }
}

void RecordedPeaks::connect(Recording recording, Read& read) {
  const bool listed =
      std::any_of(read.devices.begin(), read.devices.end(), [](const Sampled& device) { return device.lists_process; });
  for (Sampled& device : read.devices) {
    if (device.uuid.empty()) continue;
    device.counts = &peaks_[{read.clock, device.uuid}];
    if (!device.index) continue;
    Held& held = read.held[*device.index];
    DevicePeaks* const counts = !listed || device.lists_process ? device.counts : nullptr;
    if (counts == held.counts) continue;
    device.counts->begin_anew(read.read_ns);
    if (held.counts != nullptr) held.counts->end(recording, read.read_ns);
    held.counts = counts;
    report(recording, read, held);
  }
}

void RecordedPeaks::disconnect(Recording recording, Read& read) {
  for (auto& [index, held] : read.held) {
    if (held.counts != nullptr) held.counts->end(recording, read.read_ns);
    held.counts = nullptr;
  }
  for (Sampled& device : read.devices) device.counts = nullptr;
  read.counts = false;
  read.left_at_ns = read.read_ns;
}

void RecordedPeaks::caught_up(Recording recording) {
  const auto known = read_.find(recording);
  if (known == read_.end()) return;
  Read& read = known->second;
  if (read.counts || (read.left_at_ns != 0 && read.read_ns <= read.left_at_ns)) return;
  read.counts = true;
  connect(recording, read);
}

void RecordedPeaks::end(Recording recording) {
  const auto ended = read_.find(recording);
  if (ended == read_.end()) return;
  Read& read = ended->second;
  const std::string clock = read.clock;
  disconnect(recording, read);
  read_.erase(ended);
  const bool others = std::any_of(read_.begin(), read_.end(), [&](const auto& of) { return of.second.clock == clock; });
  if (others) return;
  for (auto& [tracked, peaks] : peaks_) {
    if (tracked.clock == clock) peaks.finish();
  }
}

std::vector<RecordedPeak> RecordedPeaks::take() {
  std::map<std::string, std::uint64_t> latest;
  for (const auto& [recording, read] : read_) {
    if (read.counts) latest[read.clock] = std::max(latest[read.clock], read.read_ns);
  }
  std::map<std::string, std::uint64_t> settled = latest;
  for (auto& [recording, read] : read_) {
    if (!read.counts) continue;
    if (read.read_ns + kSilentNs < latest[read.clock]) {
      disconnect(recording, read);
    } else {
      settled[read.clock] = std::min(settled[read.clock], read.read_ns);
    }
  }
  std::vector<RecordedPeak> found;
  for (auto& [tracked, peaks] : peaks_) {
    if (const auto until = settled.find(tracked.clock); until != settled.end()) peaks.settle(until->second);
    if (const auto bytes = peaks.take_peak()) found.push_back({tracked.uuid, *bytes});
  }
  std::erase_if(peaks_, [&](const auto& of) {
    return std::none_of(read_.begin(), read_.end(),
                        [&](const auto& read) { return read.second.clock == of.first.clock; });
  });
  return found;
}

void add_up_owners(std::vector<RecordedOwners>& owners, const AttributedStore& store) {
  if (store.attribution == nullptr) return;
  for (RecordedOwners& sums : owners) {  // a device without live blocks may be missing in the window
    clear(sums.categories);
    clear(sums.components);
  }
  for (std::size_t device = 0; device < store.devices.size(); ++device) {
    if (is_driver_memory(store.devices[device].device)) continue;
    RecordedOwners& sums = of_device(owners, store.devices[device].device);
    const HeldBlocks held = held_blocks(store, {Moment::Kind::end, 0, 0}, device, {});
    for (const BlockId block : held.blocks) {
      const Owner& owner = store.attribution->blocks[block.value];
      add(sums.categories, owner.category, store.blocks.size[block.value]);
      add(sums.components, owner.component, store.blocks.size[block.value]);
    }
    add(sums.categories, Category::unknown, held.unrecorded_bytes);
    add(sums.components, Component::other, held.unrecorded_bytes);
  }
}

}  // namespace tidemark
