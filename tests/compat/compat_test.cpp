// Every recording kept here must read as it did on the day of its release. The expected values were written by
// read_tide.py, which shares only docs/format.md with the C++ reader.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "trace/reader.h"
#include "trace/recording_state.h"
#include "trace/running_totals.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;

template <typename Tag>
Json id(Id<Tag> id) {
  return id.valid() ? Json(id.value) : Json(nullptr);
}

Json event_json(const Event& event) {
  static constexpr const char* kKinds[] = {"allocate", "free", "out_of_memory", "pause", "resume", "release"};
  Json json = {
      {"kind", kKinds[static_cast<std::size_t>(event.kind)]}, {"time_ns", event.time_ns}, {"thread", id(event.thread)}};
  if (event.kind == EventKind::pause || event.kind == EventKind::resume) return json;
  const bool block = event.kind != EventKind::out_of_memory;
  json["device"] = {static_cast<int>(event.device.type), event.device.index};
  json["slot"] = id(event.slot);
  json["address"] = block ? Json(event.address) : Json(nullptr);
  const bool no_block = event.kind == EventKind::release || (event.kind == EventKind::free && !event.slot.valid());
  json["size"] = no_block ? Json(nullptr) : Json(event.size);
  if (event.kind != EventKind::free && event.kind != EventKind::release) json["stack"] = id(event.stack);
  if (event.sequence != 0) json["sequence"] = event.sequence;
  if (event.node.valid()) {
    json["node"] = event.node.value;
    json["node_sequence"] = event.node_sequence;
  }
  if (event.has_totals) {
    json["allocated"] = event.total_allocated;
    json["reserved"] = event.total_reserved;
  }
  return json;
}

Json location_json(const Location& location) {
  if (location.kind == Location::Kind::native) return {"native", id(location.module), location.offset};
  return {"python", id(location.file), id(location.function), location.line};
}

template <typename T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json fields_json(const SampledDevice& device) {
  return {1,
          {device.index, optional(device.instance_of), optional(device.cuda_index), optional(device.total_bytes),
           device.vendor, device.name, device.uuid, device.bus_id}};
}
Json fields_json(const DeviceSample& sample) {
  return {
      2,
      {sample.time_ns, id(sample.device), optional(sample.used_bytes), optional(sample.driver_reserved_bytes),
       optional(sample.utilization_percent), optional(sample.temperature_celsius), optional(sample.power_milliwatts)}};
}
Json fields_json(const DeviceProcessesSample& sample) {
  Json processes = Json::array();
  for (const SampledProcess& process : sample.processes) {
    processes.push_back(
        Json::array({process.pid, static_cast<int>(process.kind), optional(process.bytes), process.name}));
  }
  return {3, {sample.time_ns, id(sample.device), processes}};
}
Json fields_json(const HostSample& sample) {
  Json fields = {sample.time_ns,
                 optional(sample.rss_bytes),
                 optional(sample.pss_bytes),
                 optional(sample.job_processes),
                 optional(sample.job_rss_bytes),
                 optional(sample.job_pss_bytes),
                 optional(sample.cgroup_usage_bytes),
                 optional(sample.cgroup_limit_bytes),
                 optional(sample.cgroup_oom_kills)};
  if (sample.anon_bytes) {  // those of version 0.1.0 end here
    for (const auto& bytes : {sample.anon_bytes, sample.file_bytes, sample.shmem_bytes, sample.swap_bytes,
                              sample.locked_bytes, sample.pinned_bytes, sample.job_anon_bytes, sample.job_file_bytes,
                              sample.job_shmem_bytes, sample.job_swap_bytes, sample.machine_available_bytes}) {
      fields.push_back(optional(bytes));
    }
  }
  return {4, fields};
}
Json pages_json(const ProcessPages& pages) {
  return {optional(pages.rss_bytes),   optional(pages.anon_bytes), optional(pages.file_bytes),
          optional(pages.shmem_bytes), optional(pages.swap_bytes), optional(pages.locked_bytes),
          optional(pages.pinned_bytes)};
}
Json process_json(const HostProcess& process) {
  Json fields = {process.pid,
                 process.parent_pid,
                 static_cast<int>(process.role),
                 process.recorded ? 1 : 0,
                 optional(process.number),
                 optional(process.count)};
  for (const Json& bytes : pages_json(process.pages)) fields.push_back(bytes);
  fields.insert(fields.end(), {optional(process.pss_bytes), optional(process.private_bytes), process.name});
  return fields;
}
Json parts_json(const MemoryParts& parts) {
  return {optional(parts.used_bytes),   optional(parts.limit_bytes), optional(parts.anon_bytes),
          optional(parts.cache_bytes),  optional(parts.shmem_bytes), optional(parts.kernel_bytes),
          optional(parts.socket_bytes), optional(parts.swap_bytes)};
}
Json fields_json(const HostPartsSample& sample) {
  const MemoryEvents& events = sample.cgroup_events;
  const Json under_oom = events.under_oom ? Json(*events.under_oom ? 1 : 0) : Json(nullptr);
  Json processes = Json::array();
  for (const HostProcess& process : sample.processes) processes.push_back(process_json(process));
  return {6,
          {sample.time_ns, parts_json(sample.cgroup),
           Json::array(
               {optional(events.low), optional(events.high), optional(events.max), optional(events.oom), under_oom}),
           parts_json(sample.machine),
           Json::array({optional(sample.machine_available_bytes), optional(sample.machine_oom_kills)}), processes,
           sample.other_processes, pages_json(sample.other_pages)}};
}
Json fields_json(const KilledProcess& killed) {
  return {
      7,
      {killed.time_ns, process_json(killed.process), static_cast<int>(killed.evidence), static_cast<int>(killed.scope),
       Json::array({optional(killed.cgroup_usage_bytes), optional(killed.cgroup_limit_bytes)})}};
}

Json fields_json(const SlowDriverCall& call) {
  return {5, {call.time_ns, call.duration_ns}};
}

/// As stored in the file: -1 if unknown.
template <typename Number>
Json number(const std::optional<Number>& value) {
  return value.value_or(-1);
}

/// The tables as printed by read_tide.py; losses are compared separately, because the C++ reader adds equal ones up.
Json tables_json(const Definitions& all) {
  const ProcessInfo& process = all.process;
  Json json;
  json["process"] = {number(process.pid),        number(process.parent_pid), number(process.rank),
                     number(process.local_rank), number(process.world_size), process.start_wall_ns.value_or(0),
                     process.hostname,           process.command_line,       process.python_version,
                     process.torch_version,      process.stack_mode,         process.recorder_version};
  json["strings"] = all.strings;
  for (const char* table : {"locations", "stacks", "threads", "modules"}) json[table] = Json::array();
  for (const Location& location : all.locations) json["locations"].push_back(location_json(location));
  for (const StackNode& node : all.stacks) json["stacks"].push_back(Json::array({id(node.parent), id(node.location)}));
  for (const ThreadInfo& thread : all.threads)
    json["threads"].push_back(Json::array({number(thread.tid), thread.name}));
  for (const ModuleInfo& module : all.modules) {
    json["modules"].push_back(Json::array({id(module.path), module.load_address, module.build_id}));
  }
  for (const AutogradNode& node : all.autograd_nodes) {
    json["autograd_nodes"].push_back(Json::array({id(node.type), id(node.forward_thread)}));
  }
  json["marks"] = Json::array();
  for (const Mark& mark : all.marks) {
    json["marks"].push_back(
        Json::array({static_cast<unsigned>(mark.kind), mark.time_ns, id(mark.name), id(mark.thread)}));
  }
  json["end"] = all.end ? Json::array({all.end->time_ns, all.end->process_exited}) : Json(nullptr);
  return json;
}

Json totals_json(const RunningTotals& totals) {
  Json devices = Json::array();
  for (const DeviceRunningTotals& on : totals.devices) {
    Json device = {static_cast<int>(on.device.type), on.device.index, on.has_totals ? 1 : 0, on.live, on.peak_live};
    if (on.has_totals) {
      for (const std::uint64_t bytes : {on.allocated, on.peak_allocated, on.reserved, on.peak_reserved}) {
        device.push_back(bytes);
      }
    }
    devices.push_back(device);
  }
  return {totals.events, totals.time_ns, devices};
}

/// The entries that are not 0, by index.
template <typename Addresses>
Json addresses_json(const Addresses& addresses) {
  Json entries = Json::array();
  for (std::size_t n = 0; n < addresses.size(); ++n) {
    if (addresses[n] != 0) entries.push_back(Json::array({n, addresses[n]}));
  }
  return entries;
}

Json state_json(const RecordingState& state) {
  Json devices = Json::array();
  for (const RecordingState::OnDevice& on : state.devices) {
    devices.push_back(Json::array(
        {static_cast<int>(on.device.type), on.device.index, on.has_totals ? 1 : 0, on.allocated, on.reserved}));
  }
  Json blocks = Json::array();
  for (const RecordingState::Block& block : state.blocks) {
    blocks.push_back(Json::array({block.slot, block.device, block.address, block.size, id(block.stack), block.time_ns,
                                  id(block.thread), block.sequence, id(block.node), block.node_sequence}));
  }
  return {state.paused ? 1 : 0,
          state.time_ns,
          id(ThreadId{state.thread_code - 1}),
          state.device,
          state.freed_slot,
          state.allocated_at,
          state.sequence,
          state.node_sequence,
          devices,
          blocks,
          addresses_json(state.expected),
          addresses_json(state.recent)};
}

/// A reader that begins at a state frame gets the same as one that has read everything.
void expect_the_rest_behind(const std::filesystem::path& path,
                            const std::vector<std::pair<std::uint64_t, std::size_t>>& states,
                            const std::vector<Json>& events) {
  for (const auto& [offset, events_before] : states) {
    const auto reader = TraceReader::open(path.string()).value();
    reader->pass_over_until(offset);
    std::vector<Event> batch;
    ASSERT_TRUE(reader->next(batch).value());
    std::size_t at = events_before;
    while (reader->next(batch).value()) {
      for (const Event& event : batch) EXPECT_EQ(event_json(event), events.at(at++)) << at;
    }
    EXPECT_EQ(at, events.size());
  }
}

class Compat : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Compat, ReadsAsOnTheDayOfItsRelease) {
  auto opened = TraceReader::open(GetParam().string());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  TraceReader& reader = **opened;
  std::vector<Json> events;
  std::vector<Json> samples;
  reader.observe_samples([&](const SampleRecord& record) {
    samples.push_back(std::visit([](const auto& sample) { return fields_json(sample); }, record));
  });
  std::vector<std::pair<std::uint64_t, std::size_t>> states;  // their offsets, and the number of events before
  Json totals = Json::array();
  Json state = Json::array();
  Frame frame;
  std::vector<Event> batch;
  while (true) {
    const auto more = reader.next_frame(frame, batch);
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (!*more) break;
    for (const Event& event : batch) events.push_back(event_json(event));
    if (frame.type == static_cast<std::uint8_t>(format::FrameType::totals)) {
      totals.push_back(totals_json(decode_totals(frame.payload).value()));
    } else if (frame.type == static_cast<std::uint8_t>(format::FrameType::state)) {
      states.emplace_back(frame.offset, events.size());
      state.push_back(state_json(decode_state(frame.payload, DefinedIds::of(reader.definitions())).value()));
    }
  }
  expect_the_rest_behind(GetParam(), states, events);
  Json tables = tables_json(reader.definitions());
  tables["totals"] = totals;
  tables["states"] = state;
  std::map<std::pair<unsigned, std::string>, std::uint64_t> losses;
  for (const Loss& loss : reader.definitions().losses)
    losses[{static_cast<unsigned>(loss.kind), loss.text}] += loss.count;

  std::ifstream expected(std::filesystem::path(GetParam()).replace_extension(".expected.jsonl"));
  ASSERT_TRUE(expected.is_open());
  std::size_t compared = 0;
  std::size_t compared_samples = 0;
  for (std::string line; std::getline(expected, line);) {
    const Json json = Json::parse(line);
    if (json.contains("time_ns")) {
      ASSERT_LT(compared, events.size());
      EXPECT_EQ(events[compared], json) << "event " << compared;
      ++compared;
    } else if (json.contains("sample")) {
      ASSERT_LT(compared_samples, samples.size());
      EXPECT_EQ(samples[compared_samples], json["sample"]) << "sample " << compared_samples;
      ++compared_samples;
    } else if (json.contains("losses")) {
      for (const Json& loss : json["losses"]) {
        losses[{loss[0].get<unsigned>(), loss[2].get<std::string>()}] -= loss[1].get<std::uint64_t>();
      }
      for (const auto& [kind_and_text, rest] : losses) EXPECT_EQ(rest, 0U) << kind_and_text.second;
    } else if (json.contains("skipped") || json.contains("problem")) {
      EXPECT_TRUE(json.begin().value() == 0 || json.begin().value().is_null());
    } else {
      EXPECT_EQ(tables[json.begin().key()], json.begin().value());
    }
  }
  EXPECT_EQ(compared, events.size());
  EXPECT_EQ(compared_samples, samples.size());
  EXPECT_GT(compared + compared_samples, 0U);
}

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(TIDEMARK_COMPAT_FOLDER)) {
    if (entry.path().extension() == ".tide") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Without a recording the suite is not instantiated, which GoogleTest reports as a failure.
INSTANTIATE_TEST_SUITE_P(Releases, Compat, ::testing::ValuesIn(recordings()), [](const auto& parameter) {
  std::string name = parameter.param.stem().string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace tidemark
