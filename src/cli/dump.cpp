// tidemark dump: every frame and every record of a recording, one line each, in the order of the file.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "query/words/ledger.h"
#include "trace/data_quality.h"
#include "trace/reader.h"
#include "trace/recording_state.h"
#include "trace/running_totals.h"
#include "trace/sample.h"

namespace tidemark::cli {

namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json pages_fields(const ProcessPages& pages) {
  return {{"rss_bytes", or_null(pages.rss_bytes)},      {"anon_bytes", or_null(pages.anon_bytes)},
          {"file_bytes", or_null(pages.file_bytes)},    {"shmem_bytes", or_null(pages.shmem_bytes)},
          {"swap_bytes", or_null(pages.swap_bytes)},    {"locked_bytes", or_null(pages.locked_bytes)},
          {"pinned_bytes", or_null(pages.pinned_bytes)}};
}

Json process_fields_of(const HostProcess& process) {
  Json fields = {{"pid", process.pid},           {"parent_pid", process.parent_pid},  {"role", name_of(process.role)},
                 {"recorded", process.recorded}, {"number", or_null(process.number)}, {"count", or_null(process.count)},
                 {"name", process.name}};
  fields.update(pages_fields(process.pages));
  fields["pss_bytes"] = or_null(process.pss_bytes);
  fields["private_bytes"] = or_null(process.private_bytes);
  return fields;
}

Json parts_fields(const MemoryParts& parts) {
  return {{"used_bytes", or_null(parts.used_bytes)},     {"limit_bytes", or_null(parts.limit_bytes)},
          {"anon_bytes", or_null(parts.anon_bytes)},     {"cache_bytes", or_null(parts.cache_bytes)},
          {"shmem_bytes", or_null(parts.shmem_bytes)},   {"kernel_bytes", or_null(parts.kernel_bytes)},
          {"socket_bytes", or_null(parts.socket_bytes)}, {"swap_bytes", or_null(parts.swap_bytes)}};
}

// Fields that recordings of earlier versions lack; empty if none of them is known.
Json host_usage_fields(const HostSample& sample) {
  Json fields = {{"anon_bytes", or_null(sample.anon_bytes)},
                 {"file_bytes", or_null(sample.file_bytes)},
                 {"shmem_bytes", or_null(sample.shmem_bytes)},
                 {"swap_bytes", or_null(sample.swap_bytes)},
                 {"locked_bytes", or_null(sample.locked_bytes)},
                 {"pinned_bytes", or_null(sample.pinned_bytes)},
                 {"job_anon_bytes", or_null(sample.job_anon_bytes)},
                 {"job_file_bytes", or_null(sample.job_file_bytes)},
                 {"job_shmem_bytes", or_null(sample.job_shmem_bytes)},
                 {"job_swap_bytes", or_null(sample.job_swap_bytes)},
                 {"machine_available_bytes", or_null(sample.machine_available_bytes)}};
  const bool known = std::any_of(fields.begin(), fields.end(), [](const Json& value) { return !value.is_null(); });
  return known ? fields : Json::object();
}

Json host_parts_fields(const HostPartsSample& sample) {
  Json processes = Json::array();
  for (const HostProcess& process : sample.processes) processes.push_back(process_fields_of(process));
  return {{"time_ns", sample.time_ns},
          {"cgroup", parts_fields(sample.cgroup)},
          {"cgroup_events",
           {{"low", or_null(sample.cgroup_events.low)},
            {"high", or_null(sample.cgroup_events.high)},
            {"max", or_null(sample.cgroup_events.max)},
            {"oom", or_null(sample.cgroup_events.oom)},
            {"under_oom", or_null(sample.cgroup_events.under_oom)}}},
          {"machine", parts_fields(sample.machine)},
          {"machine_available_bytes", or_null(sample.machine_available_bytes)},
          {"machine_oom_kills", or_null(sample.machine_oom_kills)},
          {"processes", std::move(processes)},
          {"other_processes", sample.other_processes},
          {"other_pages", pages_fields(sample.other_pages)}};
}

Json killed_fields(const KilledProcess& killed) {
  return {{"time_ns", killed.time_ns},
          {"process", process_fields_of(killed.process)},
          {"evidence", name_of(killed.evidence)},
          {"scope", name_of(killed.scope)},
          {"cgroup_usage_bytes", or_null(killed.cgroup_usage_bytes)},
          {"cgroup_limit_bytes", or_null(killed.cgroup_limit_bytes)}};
}

struct DumpArguments {
  std::string path;
  std::string format = "text";
  bool frames_only = false;
};

/// A line: its subject, and its fields in order. Text and JSON print the same fields.
std::string text_line(const char* what, const Json& fields) {
  // These hold words and numbers of our own; any other string may hold anything, and stands in quotes.
  static constexpr std::string_view kBare[] = {"type",    "kind",         "severity", "device", "offset",
                                               "address", "load_address", "role",     "graph"};
  std::string line = what;
  for (const auto& [name, value] : fields.items()) {
    const bool bare = value.is_string() && std::ranges::find(kBare, name) != std::end(kBare);
    line += fmt::format(" {}={}", name,
                        value.is_null() ? std::string("-")
                        : bare          ? value.get<std::string>()
                                        : value.dump(-1, ' ', true, Json::error_handler_t::replace));
  }
  return line + '\n';
}

std::string json_line(const char* what, const Json& fields) {
  return Json{{what, fields}}.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

template <typename Tag>
Json id(Id<Tag> id) {
  return id.valid() ? Json(id.value) : Json(nullptr);
}
template <typename T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json hex(std::uint64_t value) {
  return fmt::format("0x{:x}", value);
}

Json process_fields(const ProcessInfo& process) {
  Json fields = {{"pid", nullable(process.pid)},
                 {"parent_pid", nullable(process.parent_pid)},
                 {"rank", nullable(process.rank)},
                 {"local_rank", nullable(process.local_rank)},
                 {"world_size", nullable(process.world_size)},
                 {"start_wall_ns", nullable(process.start_wall_ns)},
                 {"hostname", process.hostname},
                 {"command_line", process.command_line},
                 {"python_version", process.python_version},
                 {"torch_version", process.torch_version},
                 {"stack_mode", process.stack_mode},
                 {"recorder_version", process.recorder_version}};
  if (process.allocator_settings) fields["allocator_settings"] = *process.allocator_settings;
  return fields;
}

Json location_fields(std::size_t own, const Location& location) {
  if (location.kind == Location::Kind::native) {
    return {{"id", own}, {"kind", "native"}, {"module", id(location.module)}, {"offset", hex(location.offset)}};
  }
  Json fields = {{"id", own},
                 {"kind", "python"},
                 {"file", id(location.file)},
                 {"function", id(location.function)},
                 {"line", location.line}};
  if (location.nn_module.valid()) fields["nn_module"] = id(location.nn_module);
  if (location.graph != CompiledGraph::none) fields["graph"] = name_in(kCompiledGraphNames, location.graph);
  if (location.source_nodes.valid()) fields["source_nodes"] = id(location.source_nodes);
  return fields;
}

Json loss_fields(const Loss& loss) {
  const QualityFacts& facts = facts_of(loss.kind);
  Json fields = {
      {"kind", facts.name}, {"severity", name_of(facts.severity)}, {"count", loss.count}, {"text", loss.text}};
  if (loss.limit) fields["limit"] = *loss.limit;
  return fields;
}

Json mark_fields(const Mark& mark) {
  return {{"kind", name_in(kMarkKindNames, mark.kind)},
          {"time_ns", mark.time_ns},
          {"name", id(mark.name)},
          {"thread", id(mark.thread)}};
}

Json tensor_fields(const ModelTensor& tensor) {
  return {{"time_ns", tensor.time_ns},
          {"role", name_in(kTensorRoleNames, tensor.role, "unknown")},
          {"device", to_string(tensor.device)},
          {"address", hex(tensor.address)},
          {"storage_bytes", tensor.storage_bytes},
          {"bytes", tensor.bytes},
          {"nn_module", id(tensor.module)},
          {"name", id(tensor.name)},
          {"state", id(tensor.state)},
          {"dtype", id(tensor.dtype)},
          {"shape", tensor.shape},
          {"requires_grad", tensor.requires_grad}};
}

Json event_fields(const Event& event) {
  Json fields = {
      {"time_ns", event.time_ns}, {"kind", name_in(kEventKindNames, event.kind)}, {"thread", id(event.thread)}};
  if (event.kind == EventKind::pause || event.kind == EventKind::resume) return fields;
  fields["device"] = to_string(event.device);
  if (event.kind == EventKind::allocate || event.kind == EventKind::free) {
    fields["slot"] = id(event.slot);
    fields["address"] = hex(event.address);
  }
  if (event.kind != EventKind::release) {
    const bool size_known = event.kind != EventKind::free || event.slot.valid();
    fields["size"] = size_known ? Json(event.size) : Json(nullptr);
  }
  if (event.kind == EventKind::allocate || event.kind == EventKind::out_of_memory) {
    fields["stack"] = id(event.stack);
    if (event.sequence != 0) fields["sequence"] = event.sequence;
    if (event.node.valid()) {
      fields["autograd_node"] = id(event.node);
      fields["node_sequence"] = event.node_sequence;
    }
  }
  if (event.has_totals) {
    fields["total_allocated"] = event.total_allocated;
    fields["total_reserved"] = event.total_reserved;
  }
  return fields;
}

std::pair<const char*, Json> sample_fields(const SampledDevice& device) {
  return {"sampled_device",
          {{"vendor", device.vendor},
           {"index", device.index},
           {"instance_of", nullable(device.instance_of)},
           {"cuda_index", nullable(device.cuda_index)},
           {"name", device.name},
           {"uuid", device.uuid},
           {"bus_id", device.bus_id},
           {"total_bytes", nullable(device.total_bytes)}}};
}

std::pair<const char*, Json> sample_fields(const DeviceSample& sample) {
  return {"device_sample",
          {{"time_ns", sample.time_ns},
           {"sampled_device", id(sample.device)},
           {"used_bytes", nullable(sample.used_bytes)},
           {"driver_reserved_bytes", nullable(sample.driver_reserved_bytes)},
           {"utilization_percent", nullable(sample.utilization_percent)},
           {"temperature_celsius", nullable(sample.temperature_celsius)},
           {"power_milliwatts", nullable(sample.power_milliwatts)}}};
}

std::pair<const char*, Json> sample_fields(const DeviceProcessesSample& sample) {
  Json processes = Json::array();
  for (const SampledProcess& process : sample.processes) {
    processes.push_back({{"pid", process.pid},
                         {"kind", name_of(process.kind)},
                         {"bytes", nullable(process.bytes)},
                         {"name", process.name}});
  }
  return {"device_processes",
          {{"time_ns", sample.time_ns}, {"sampled_device", id(sample.device)}, {"processes", std::move(processes)}}};
}

std::pair<const char*, Json> sample_fields(const HostSample& sample) {
  Json fields = {{"time_ns", sample.time_ns},
                 {"rss_bytes", nullable(sample.rss_bytes)},
                 {"pss_bytes", nullable(sample.pss_bytes)},
                 {"job_processes", nullable(sample.job_processes)},
                 {"job_rss_bytes", nullable(sample.job_rss_bytes)},
                 {"job_pss_bytes", nullable(sample.job_pss_bytes)},
                 {"cgroup_usage_bytes", nullable(sample.cgroup_usage_bytes)},
                 {"cgroup_limit_bytes", nullable(sample.cgroup_limit_bytes)},
                 {"cgroup_oom_kills", nullable(sample.cgroup_oom_kills)}};
  fields.update(host_usage_fields(sample));
  return {"host_sample", std::move(fields)};
}

std::pair<const char*, Json> sample_fields(const HostPartsSample& sample) {
  return {"host_parts", host_parts_fields(sample)};
}

std::pair<const char*, Json> sample_fields(const KilledProcess& killed) {
  return {"killed_process", killed_fields(killed)};
}

std::pair<const char*, Json> sample_fields(const SlowDriverCall& call) {
  return {"slow_driver_call", {{"time_ns", call.time_ns}, {"duration_ns", call.duration_ns}}};
}

Json frame_fields(const Frame& frame) {
  const std::string_view type = name_in(format::kFrameTypeNames, format::FrameType{frame.type}, "");
  return {{"offset", frame.offset},
          {"type", type.empty() ? Json(frame.type) : Json(type)},
          {"version", frame.version},
          {"flags", frame.flags},
          {"stored_length", frame.stored_length},
          {"raw_length", frame.raw_length},
          {"known", frame.known}};
}

/// The record just read, as a name and fields: it is the last entry of its table.
std::pair<const char*, Json> last_record(format::RecordKind kind, const Definitions& all) {
  using format::RecordKind;
  switch (kind) {
    case RecordKind::process:
      return {"process", process_fields(all.process)};
    case RecordKind::string:
      return {"string", {{"id", all.strings.size() - 1}, {"text", all.strings.back()}}};
    case RecordKind::location:
      return {"location", location_fields(all.locations.size() - 1, all.locations.back())};
    case RecordKind::stack:
      return {"stack",
              {{"id", all.stacks.size() - 1},
               {"parent", id(all.stacks.back().parent)},
               {"location", id(all.stacks.back().location)}}};
    case RecordKind::thread:
      return {"thread",
              {{"id", all.threads.size() - 1},
               {"tid", nullable(all.threads.back().tid)},
               {"name", all.threads.back().name}}};
    case RecordKind::module:
      return {"module",
              {{"id", all.modules.size() - 1},
               {"path", id(all.modules.back().path)},
               {"build_id", all.modules.back().build_id},
               {"load_address", hex(all.modules.back().load_address)}}};
    case RecordKind::loss:
      return {"loss", loss_fields(all.losses.back())};
    case RecordKind::mark:
      return {"mark", mark_fields(all.marks.back())};
    case RecordKind::nn_module:
      return {"nn_module", {{"id", all.nn_modules.size() - 1}, {"address", hex(all.nn_modules.back().address)}}};
    case RecordKind::nn_module_name: {
      const NnModuleName& name = all.nn_module_names.back();
      return {
          "nn_module_name",
          {{"nn_module", id(name.module)}, {"root", id(name.root)}, {"path", id(name.path)}, {"class", id(name.type)}}};
    }
    case RecordKind::tensor:
      return {"tensor", tensor_fields(all.tensors.back())};
    case RecordKind::autograd_node:
      return {"autograd_node",
              {{"id", all.autograd_nodes.size() - 1},
               {"class", id(all.autograd_nodes.back().type)},
               {"forward_thread", id(all.autograd_nodes.back().forward_thread)}}};
    case RecordKind::end:
      return {"end", {{"time_ns", all.end->time_ns}, {"process_exited", all.end->process_exited}}};
  }
  return {"unknown", {{"kind", static_cast<unsigned>(kind)}}};
}

Json totals_fields(const DeviceRunningTotals& of) {
  Json fields = {{"device", to_string(of.device)}, {"live", of.live}, {"peak_live", of.peak_live}};
  if (!of.has_totals) return fields;
  fields.update({{"allocated", of.allocated},
                 {"peak_allocated", of.peak_allocated},
                 {"reserved", of.reserved},
                 {"peak_reserved", of.peak_reserved}});
  return fields;
}

/// Content of frames that replace events; nothing for other frames, and for invalid ones.
template <typename Line>
std::string checkpoint_lines(const Frame& frame, const Definitions& all, const Line& line) {
  if (!frame.known) return "";
  if (static_cast<format::FrameType>(frame.type) == format::FrameType::totals) {
    const auto totals = decode_totals(frame.payload);
    if (!totals) return "";
    std::string lines = line("totals", {{"time_ns", totals->time_ns}, {"events", totals->events}});
    for (const DeviceRunningTotals& of : totals->devices) lines += line("totals_on_device", totals_fields(of));
    return lines;
  }
  if (static_cast<format::FrameType>(frame.type) != format::FrameType::state) return "";
  const auto state = decode_state(frame.payload, DefinedIds::of(all));
  if (!state) return "";
  return line("state", {{"time_ns", state->time_ns}, {"blocks", state->blocks.size()}, {"paused", state->paused}});
}

int dump(const DumpArguments& options) {
  const auto opened = TraceReader::open(options.path);
  if (!opened.ok()) return fail(opened.error().message);
  TraceReader& reader = **opened;

  const auto line = options.format == "json" ? json_line : text_line;
  Result<void> written;
  const auto print = [&written](const std::string& text) {
    if (written) written = write_stdout(text);
  };
  print(line("recording", {{"format_version", reader.format_version()}}));
  Frame frame;
  std::vector<Event> events;
  std::string records;
  const RecordObserver observe = [&](format::RecordKind kind) {
    if (options.frames_only) return;
    const auto [what, fields] = last_record(kind, reader.definitions());
    records += line(what, fields);
  };
  reader.observe_samples([&](const SampleRecord& record) {
    if (options.frames_only) return;
    const auto [what, fields] = std::visit([](const auto& sample) { return sample_fields(sample); }, record);
    records += line(what, fields);
  });
  while (written) {
    records.clear();
    const Result<bool> more = reader.next_frame(frame, events, observe);
    if (!more.ok()) return fail(more.error().message);
    if (!*more) break;
    print(line("frame", frame_fields(frame)));
    print(records);
    if (options.frames_only) continue;
    print(checkpoint_lines(frame, reader.definitions(), line));
    for (const Event& event : events) print(line("event", event_fields(event)));
  }
  for (const Loss& loss : reader.definitions().losses) print(line("missing", loss_fields(loss)));
  if (written) written = flush_stdout();
  return written ? kOk : fail(written.error().message);
}

}  // namespace

std::function<int()> setup_dump(CommandLine& app) {
  const auto options = std::make_shared<DumpArguments>();
  app.add_option("FILE", options->path, "Recording")->required();
  app.add_option("--format", options->format, "Output format; json is one object per line")->one_of("text|json");
  app.add_flag("--frames", options->frames_only, "Print frames only, without their records");
  app.footer(
      "Missing data is listed at the end. docs/format.md explains the fields.\n\nExamples:\n"
      "  tidemark dump run.tide | less\n"
      "  tidemark dump --format json run.tide | jq 'select(.event.kind == \"out_of_memory\")'");
  return [options] { return dump(*options); };
}

}  // namespace tidemark::cli
