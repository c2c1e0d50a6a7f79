// Builds stores event by event, for tests of everything that reads them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/builder.h"
#include "store/store.h"
#include "store/tally.h"

namespace tidemark::testing {

inline constexpr Device kCpu = {DeviceType::cpu, 0};
inline constexpr Device kGpu = {DeviceType::cuda, 0};
inline constexpr Device kGpu1 = {DeviceType::cuda, 1};
inline constexpr Device kDriver = {DeviceType::cuda_driver, 0};

/// Takes blocks by a name of the test's choice; assigns slots and totals as the trace reader would.
class Scenario {
 public:
  Scenario() {
    definitions.process.pid = 123;
    definitions.end = EndInfo{0, true};
  }

  /// A Python location "function (file:line)".
  LocationId python(const std::string& function, const std::string& file, std::uint32_t line) {
    Location location;
    location.function = text(function);
    location.file = text(file);
    location.line = line;
    return add(location);
  }
  LocationId native(const std::string& module, std::uint64_t offset, const std::string& build_id = {}) {
    Location location;
    location.kind = Location::Kind::native;
    location.module = ModuleId{static_cast<std::uint32_t>(definitions.modules.size())};
    location.offset = offset;
    definitions.modules.push_back({text(module), build_id, 0});
    return add(location);
  }
  /// A new node, even if an equal one exists.
  StackId push(StackId parent, LocationId location) {
    definitions.stacks.push_back({parent, location});
    return StackId{static_cast<std::uint32_t>(definitions.stacks.size() - 1)};
  }
  /// Frames from the outermost to the innermost.
  StackId stack(const std::vector<LocationId>& frames) {
    StackId node;
    for (const LocationId frame : frames) node = push(node, frame);
    return node;
  }
  ThreadId thread(std::int64_t tid, const std::string& name) {
    definitions.threads.push_back({tid, name});
    return ThreadId{static_cast<std::uint32_t>(definitions.threads.size() - 1)};
  }

  void allocate(std::uint64_t time_ns, const std::string& block, std::uint64_t size, Device device = kCpu,
                StackId stack = {}, ThreadId thread = {}) {
    Event event = start(EventKind::allocate, time_ns, device);
    event.slot = SlotId{next_slot_++};
    event.size = size;
    event.address = 4096 * (1 + std::uint64_t{event.slot.value});
    event.stack = stack;
    event.thread = thread;
    blocks_[block] = event;
    finish(event, static_cast<std::int64_t>(size));
  }
  void free(std::uint64_t time_ns, const std::string& block) {
    Event event = blocks_.at(block);
    event.kind = EventKind::free;
    event.time_ns = time_ns;
    event.stack = {};
    event.has_totals = false;
    finish(event, static_cast<std::int64_t>(std::uint64_t{0} - event.size));
  }
  /// A free without a recorded allocation; on a device with totals, `size` is subtracted from them.
  void free_unknown(std::uint64_t time_ns, Device device, std::uint64_t size = 0) {
    finish(start(EventKind::free, time_ns, device), -static_cast<std::int64_t>(size));
  }
  void out_of_memory(std::uint64_t time_ns, std::uint64_t size, Device device, StackId stack = {}) {
    Event event = start(EventKind::out_of_memory, time_ns, device);
    event.size = size;
    event.stack = stack;
    finish(event, 0);
  }
  /// Releases segments: sets the totals of the last totals() call.
  void release(std::uint64_t time_ns, Device device) { finish(start(EventKind::release, time_ns, device), 0); }
  void mark(EventKind kind, std::uint64_t time_ns) { events.push_back(start(kind, time_ns, kCpu)); }
  /// Names from the program. Equal names are one string.
  void mark(Mark::Kind kind, std::uint64_t time_ns, const std::string& name) {
    definitions.marks.push_back({kind, time_ns, name_id(name), {}});
  }
  /// The string, which is added if it is missing.
  StringId name_id(const std::string& name) {
    for (std::uint32_t index = 0; index < definitions.strings.size(); ++index) {
      if (definitions.strings[index] == name) return StringId{index};
    }
    return text(name);
  }
  /// From now on the device's events carry totals: so much more than the live blocks is allocated, so much reserved.
  void totals(Device device, std::uint64_t allocated, std::uint64_t reserved) {
    totals_[key(device)] = {allocated, reserved};
  }

  /// An NVIDIA GPU that the program calls cuda:`index`, and that samples can be of.
  SampledDeviceId sampled_gpu(std::uint32_t index, std::uint64_t total_bytes) {
    return sampled({"nvidia", index, {}, index, "NVIDIA H100", "", "", total_bytes});
  }
  SampledDeviceId sampled(const SampledDevice& device) {
    samples.emplace_back(device);
    return SampledDeviceId{sampled_devices_++};
  }
  /// Samples must be added in order of time.
  void used(std::uint64_t time_ns, SampledDeviceId device, std::optional<std::uint64_t> bytes) {
    samples.emplace_back(DeviceSample{time_ns, device, bytes, {}, {}, {}, {}});
  }
  void processes(std::uint64_t time_ns, SampledDeviceId device, const std::vector<SampledProcess>& processes) {
    samples.emplace_back(DeviceProcessesSample{time_ns, device, processes});
  }
  /// A slow call of the driver, when it returned.
  void slow_call(std::uint64_t time_ns, std::uint64_t duration_ns) {
    samples.emplace_back(SlowDriverCall{time_ns, duration_ns});
  }

  [[nodiscard]] Store store(const std::string& path = "run.tide") const {
    StoreBuilder builder;
    feed(builder);
    return std::move(builder).finish(path, definitions);
  }
  [[nodiscard]] Overview overview(const std::string& path = "run.tide", const SampleConsumer& consumer = {}) const {
    struct {
      Tally tally;
      const SampleConsumer& consumer;

      void add(const Event& event) { tally.add(event); }
      void add_sample(const SampleRecord& record) const {
        if (consumer) consumer(record, tally);
      }
    } reader{{}, consumer};
    feed(reader);
    return std::move(reader.tally).finish(path, definitions);
  }

  Definitions definitions;
  std::vector<Event> events;
  std::vector<SampleRecord> samples;

 private:
  struct Totals {
    std::uint64_t allocated = 0;
    std::uint64_t reserved = 0;
  };

  // As a recording is read: a sample after the events up to its time.
  template <typename Consumer>
  void feed(Consumer& consumer) const {
    auto sample = samples.begin();
    for (const Event& event : events) {
      for (; sample != samples.end() && time_of(*sample) < event.time_ns; ++sample) consumer.add_sample(*sample);
      consumer.add(event);
    }
    for (; sample != samples.end(); ++sample) consumer.add_sample(*sample);
  }
  static std::uint64_t time_of(const SampleRecord& record) {
    if (const auto* sample = std::get_if<DeviceSample>(&record)) return sample->time_ns;
    const auto* processes = std::get_if<DeviceProcessesSample>(&record);
    return processes == nullptr ? 0 : processes->time_ns;
  }

  static std::pair<int, int> key(Device device) { return {static_cast<int>(device.type), device.index}; }
  static Event start(EventKind kind, std::uint64_t time_ns, Device device) {
    Event event;
    event.kind = kind;
    event.time_ns = time_ns;
    event.device = device;
    return event;
  }
  void finish(Event event, std::int64_t change) {
    if (const auto totals = totals_.find(key(event.device)); totals != totals_.end()) {
      totals->second.allocated += static_cast<std::uint64_t>(change);
      event.has_totals = true;
      event.total_allocated = totals->second.allocated;
      event.total_reserved = totals->second.reserved;
    }
    events.push_back(event);
  }
  StringId text(const std::string& words) {
    definitions.strings.push_back(words);
    return StringId{static_cast<std::uint32_t>(definitions.strings.size() - 1)};
  }
  LocationId add(const Location& location) {
    definitions.locations.push_back(location);
    return LocationId{static_cast<std::uint32_t>(definitions.locations.size() - 1)};
  }

  std::map<std::string, Event> blocks_;
  std::map<std::pair<int, int>, Totals> totals_;
  std::uint32_t next_slot_ = 0;
  std::uint32_t sampled_devices_ = 0;
};

}  // namespace tidemark::testing
