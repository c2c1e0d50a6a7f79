#include "cli/devices_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/json/parts.h"
#include "report/text/columns.h"
#include "report/text/parts.h"
#include "report/words/printable.h"

namespace tidemark::cli {
namespace {

std::string memory_text(const DeviceReading& reading) {
  std::string text = fmt::format("{} used of {}", bytes_text(reading.used_bytes), bytes_text(reading.total_bytes));
  if (reading.driver_reserved_bytes) {
    text += fmt::format(", {} kept by the driver", format_bytes(*reading.driver_reserved_bytes));
  }
  return text;
}

std::string cuda_text(const ListedDevice& device, const Inventory& inventory) {
  if (device.cuda_index) return fmt::format("cuda:{}", *device.cuda_index);
  if (device.visible_to_cuda) return "visible; its number cannot be told from here";
  if (device.info.mig_enabled.value_or(false)) return "only its MIG instances are visible";
  if (inventory.cuda_visible_devices) {
    return fmt::format("not visible (CUDA_VISIBLE_DEVICES={})", printable(*inventory.cuda_visible_devices));
  }
  return "not visible";
}

const char* who_word(ProcessName::Kind kind) {
  switch (kind) {
    case ProcessName::Kind::known:
      return "process";
    case ProcessName::Kind::ended:
      return "ended";
    case ProcessName::Kind::elsewhere:
      return "another_container";
  }
  return "";
}

std::string who_text(const ProcessName& who) {
  if (who.kind == ProcessName::Kind::known) return printable(who.name);
  return who.kind == ProcessName::Kind::ended ? "(has just ended)" : "(another container)";
}

std::string processes_text(const ListedDevice& device, const Terminal& terminal) {
  if (!device.processes) return fact("processes", "n/a");
  if (device.processes->empty()) return fact("processes", "none");
  Columns columns({"bytes", "pid", "process"});
  for (const ListedProcess& listed : *device.processes) {
    columns.add({bytes_text(listed.process.bytes), std::to_string(listed.process.pid), who_text(listed.who)});
  }
  return columns.text(terminal, 4);
}

std::string device_text(const ListedDevice& device, const Inventory& inventory, const Terminal& terminal) {
  std::string text = "\n" + paint(terminal, Tone::heading, printable(device_title(device.info))) + "\n";
  const DeviceInfo& info = device.info;
  if (info.vendor == "nvidia") text += fact("CUDA", cuda_text(device, inventory));
  if (!info.uuid.empty()) text += fact("UUID", printable(info.uuid));
  text += fact("PCI address", info.bus_id.empty() ? "n/a" : printable(info.bus_id));
  if (!device.error.empty()) return text + fact("lost", paint(terminal, Tone::error, printable(device.error)));
  const DeviceReading& reading = device.reading;
  const auto number = [](const auto& value, double scale, const char* unit) {
    return value ? fmt::format("{:g} {}", static_cast<double>(*value) * scale, unit) : std::string("n/a");
  };
  text += fact("memory", memory_text(reading));
  text += fact("utilization", number(reading.utilization_percent, 1, "%"));
  text += fact("temperature", number(reading.temperature_celsius, 1, "°C"));
  text += fact("power", number(reading.power_milliwatts, 1e-3, "W"));
  if (info.mig_enabled) text += fact("MIG", *info.mig_enabled ? "on: the instances below" : "off");
  return text + processes_text(device, terminal);
}

bool any_elsewhere(const Inventory& inventory) {
  for (const ListedDevice& device : inventory.devices) {
    for (const ListedProcess& process : device.processes.value_or(std::vector<ListedProcess>())) {
      if (process.who.kind == ProcessName::Kind::elsewhere) return true;
    }
  }
  return false;
}

Json processes_json(const ListedDevice& device) {
  if (!device.processes) return nullptr;
  Json processes = Json::array();
  for (const ListedProcess& listed : *device.processes) {
    processes.push_back({{"pid", listed.process.pid},
                         {"bytes", nullable(listed.process.bytes)},
                         {"who", who_word(listed.who.kind)},
                         {"name", nullable_text(listed.who.name)}});
  }
  return processes;
}

Json device_json(const ListedDevice& device) {
  const DeviceInfo& info = device.info;
  const DeviceReading& reading = device.reading;
  return {{"vendor", info.vendor},
          {"index", info.index},
          {"instance_of", nullable(info.instance_of)},
          {"name", info.name},
          {"uuid", nullable_text(info.uuid)},
          {"bus_id", nullable_text(info.bus_id)},
          {"mig_enabled", nullable(info.mig_enabled)},
          {"visible_to_cuda", device.visible_to_cuda},
          {"cuda_index", nullable(device.cuda_index)},
          {"error", nullable_text(device.error)},
          {"total_bytes", nullable(reading.total_bytes)},
          {"used_bytes", nullable(reading.used_bytes)},
          {"driver_reserved_bytes", nullable(reading.driver_reserved_bytes)},
          {"utilization_percent", nullable(reading.utilization_percent)},
          {"temperature_celsius", nullable(reading.temperature_celsius)},
          {"power_milliwatts", nullable(reading.power_milliwatts)},
          {"processes", processes_json(device)}};
}

Json cgroup_json(const std::optional<Cgroup>& cgroup) {
  if (!cgroup) return nullptr;
  const CgroupReading reading = cgroup->read();
  return {{"version", cgroup->version()},
          {"folder", cgroup->folder()},
          {"limit_bytes", nullable(cgroup->limit_bytes())},
          {"usage_bytes", nullable(reading.usage_bytes)},
          {"oom_kills", nullable(reading.oom_kills)}};
}

}  // namespace

std::string device_title(const DeviceInfo& info) {
  const std::string number = info.instance_of ? fmt::format("GPU {} instance {}", *info.instance_of, info.index)
                                              : fmt::format("GPU {}", info.index);
  return fmt::format("{}: {}", number, info.name);
}

std::string host_memory_text(const HostMemory& host, const std::optional<Cgroup>& cgroup) {
  std::string text = fmt::format("{} available of {}", bytes_text(host.available_bytes), bytes_text(host.total_bytes));
  if (const auto limit = cgroup ? cgroup->limit_bytes() : std::nullopt) {
    text += fmt::format("; this control group may use {}, and uses {} with cached files", format_bytes(*limit),
                        bytes_text(cgroup->read().usage_bytes));
  }
  return text;
}

std::string devices_text(const Inventory& inventory, const Terminal& terminal) {
  std::string text;
  for (const ListedDriver& driver : inventory.drivers) {
    if (!driver.version.empty()) text += printable(driver.version) + "\n";
  }
  if (inventory.devices.empty()) text += "There is no GPU that tidemark can see here.\n";
  for (const ListedDevice& device : inventory.devices) text += device_text(device, inventory, terminal);
  if (!inventory.visibility_problem.empty()) {
    text += "\n" + paint(terminal, Tone::warning, printable(inventory.visibility_problem)) + "\n";
  }
  if (any_elsewhere(inventory)) {
    text +=
        "\n(another container): a PID of the host, which means nothing here. It may be a process of this container "
        "too.\n";
  }
  if (!inventory.devices.empty()) text += "\n";
  return text + "Host memory: " + host_memory_text(inventory.host, inventory.cgroup) + "\n";
}

std::string devices_json(const Inventory& inventory) {
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
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark::cli
