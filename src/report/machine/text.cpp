#include "report/common/text.h"

#include <fmt/format.h>

#include "base/units.h"
#include "query/words/machine.h"
#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string memory_text(const ListedDevice& device) {
  std::string text =
      fmt::format("{} used of {}", bytes_text(device.sample.used_bytes), bytes_text(device.info.total_bytes));
  if (device.sample.driver_reserved_bytes) {
    text += fmt::format(", {} reserved by the driver", format_bytes(*device.sample.driver_reserved_bytes));
  }
  return text;
}

std::string cuda_text(const ListedDevice& device, const Inventory& inventory) {
  if (device.info.cuda_index) return fmt::format("cuda:{}", *device.info.cuda_index);
  if (device.visible_to_cuda) return "visible; index unknown";
  if (device.info.mig_enabled.value_or(false)) return "only its MIG instances are visible";
  if (inventory.cuda_visible_devices) {
    return fmt::format("not visible (CUDA_VISIBLE_DEVICES={})", printable(*inventory.cuda_visible_devices));
  }
  return "not visible";
}

std::string process_text(const SampledProcess& process) {
  if (process.kind == ProcessKind::ended) return "(ended)";
  return process.kind == ProcessKind::other_namespace ? "(another container)" : shown(process.name);
}

std::string processes_text(const ListedDevice& device, const Terminal& terminal) {
  if (!device.processes) return fact("processes", "n/a");
  if (device.processes->empty()) return fact("processes", "none");
  Columns columns({"bytes", "pid", "process"});
  for (const SampledProcess& process : *device.processes) {
    columns.add({bytes_text(process.bytes), std::to_string(process.pid), process_text(process)});
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
  const DeviceSample& sample = device.sample;
  const auto number = [](const auto& value, double scale, const char* unit) {
    return value ? fmt::format("{:g} {}", static_cast<double>(*value) * scale, unit) : std::string("n/a");
  };
  text += fact("memory", memory_text(device));
  text += fact("utilization", number(sample.utilization_percent, 1, "%"));
  text += fact("temperature", number(sample.temperature_celsius, 1, "°C"));
  text += fact("power", number(sample.power_milliwatts, 1e-3, "W"));
  if (info.mig_enabled) text += fact("MIG", *info.mig_enabled ? "enabled; instances below" : "disabled");
  return text + processes_text(device, terminal);
}

bool any_elsewhere(const Inventory& inventory) {
  for (const ListedDevice& device : inventory.devices) {
    for (const SampledProcess& process : device.processes.value_or(std::vector<SampledProcess>())) {
      if (process.kind == ProcessKind::other_namespace) return true;
    }
  }
  return false;
}

}  // namespace

std::string to_text(const Inventory& inventory, const Terminal& terminal) {
  std::string text;
  for (const ListedDriver& driver : inventory.drivers) {
    if (!driver.version.empty()) text += printable(driver.version) + "\n";
  }
  if (inventory.devices.empty()) text += "No GPU found.\n";
  for (const ListedDevice& device : inventory.devices) text += device_text(device, inventory, terminal);
  if (!inventory.visibility_problem.empty()) {
    text += "\n" + paint(terminal, Tone::warning, printable(inventory.visibility_problem)) + "\n";
  }
  if (any_elsewhere(inventory)) {
    text +=
        "\n(another container): the PID is that of the host's PID namespace; the process may also belong to this "
        "container.\n";
  }
  if (!inventory.devices.empty()) text += "\n";
  return text + "Host memory: " + host_memory_text(inventory) + "\n";
}

std::string to_text(const Diagnosis& diagnosis, const Terminal& terminal) {
  std::string text;
  for (const Check& check : diagnosis.checks) {
    const Tone tone = check.status == CheckStatus::ok        ? Tone::quiet
                      : check.status == CheckStatus::warning ? Tone::warning
                                                             : Tone::error;
    const CheckText words = check_text(check, diagnosis);
    const std::string status = fmt::format("{:<8}", name_of(check.status));
    text += fmt::format("{} {}\n", paint(terminal, tone, status), printable(words.text));
    if (!words.advice.empty()) text += fmt::format("{:<8} → {}\n", "", printable(words.advice));
  }
  return text;
}

}  // namespace tidemark
