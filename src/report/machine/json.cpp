#include "report/machine/json.h"

#include "report/common/json_parts.h"
#include "report/machine/words.h"

namespace tidemark {
namespace {

const char* kind_name(ProcessKind kind) {
  if (kind == ProcessKind::ended) return "ended";
  return kind == ProcessKind::other_namespace ? "another_container" : "process";
}

Json processes_json(const ListedDevice& device) {
  if (!device.processes) return nullptr;
  Json processes = Json::array();
  for (const SampledProcess& process : *device.processes) {
    processes.push_back({{"pid", process.pid},
                         {"bytes", nullable(process.bytes)},
                         {"kind", kind_name(process.kind)},
                         {"name", nullable_text(process.name)}});
  }
  return processes;
}

Json device_json(const ListedDevice& device) {
  const DeviceInfo& info = device.info;
  const DeviceSample& sample = device.sample;
  return {{"vendor", info.vendor},
          {"index", info.index},
          {"instance_of", nullable(info.instance_of)},
          {"name", info.name},
          {"uuid", nullable_text(info.uuid)},
          {"bus_id", nullable_text(info.bus_id)},
          {"mig_enabled", nullable(info.mig_enabled)},
          {"visible_to_cuda", device.visible_to_cuda},
          {"cuda_index", nullable(info.cuda_index)},
          {"error", nullable_text(device.error)},
          {"total_bytes", nullable(info.total_bytes)},
          {"used_bytes", nullable(sample.used_bytes)},
          {"driver_reserved_bytes", nullable(sample.driver_reserved_bytes)},
          {"utilization_percent", nullable(sample.utilization_percent)},
          {"temperature_celsius", nullable(sample.temperature_celsius)},
          {"power_milliwatts", nullable(sample.power_milliwatts)},
          {"processes", processes_json(device)}};
}

Json cgroup_json(const std::optional<CgroupFacts>& cgroup) {
  if (!cgroup) return nullptr;
  return {{"version", cgroup->version},
          {"folder", cgroup->folder},
          {"limit_bytes", nullable(cgroup->limit_bytes)},
          {"usage_bytes", nullable(cgroup->usage_bytes)},
          {"oom_kills", nullable(cgroup->oom_kills)}};
}

std::string print(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const Inventory& inventory) {
  Json object;
  object["drivers"] = Json::array();
  for (const ListedDriver& driver : inventory.drivers) {
    object["drivers"].push_back({{"vendor", driver.vendor},
                                 {"version", nullable_text(driver.version)},
                                 {"problem", nullable_text(driver.problem)}});
  }
  object["cuda_visible_devices"] = nullable(inventory.cuda_visible_devices);
  object["cuda_device_order"] = nullable(inventory.cuda_device_order);
  object["visibility_problem"] = nullable_text(inventory.visibility_problem);
  object["devices"] = Json::array();
  for (const ListedDevice& device : inventory.devices) object["devices"].push_back(device_json(device));
  object["host"] = {{"total_bytes", nullable(inventory.host.total_bytes)},
                    {"available_bytes", nullable(inventory.host.available_bytes)},
                    {"cgroup", cgroup_json(inventory.cgroup)}};
  return print(object);
}

std::string to_json(const Diagnosis& diagnosis) {
  Json object = {{"problems", diagnosis.has_problem()}, {"checks", Json::array()}};
  for (const Check& check : diagnosis.checks) {
    const CheckText words = check_text(check, diagnosis);
    object["checks"].push_back({{"name", check.name},
                                {"status", name_of(check.status)},
                                {"text", words.text},
                                {"advice", nullable_text(words.advice)}});
  }
  return print(object);
}

}  // namespace tidemark
