// Hardware of a machine, and what can be recorded on it: devices and doctor.
#include "query/words/machine.h"

#include <optional>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/machine_results.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const ListedDriver& driver) {
  v.type("ListedDriver", "A driver that is there, working or not.");
  v.field("vendor", driver.vendor);
  v.field("version", known_text(driver.version), "null: it does not work");
  v.field("problem", known_text(driver.problem), "why not, and what to do");
}

template <typename Visitor>
void describe(Visitor& v, const SampledProcess& process) {
  const ProcessKind kind = process.kind;
  v.type("ListedProcess", "A process on a device.");
  v.field("pid", process.pid);
  v.field("bytes", process.bytes);
  v.field("kind",
          one_of<"process", "ended", "another_container">(kind == ProcessKind::ended             ? "ended"
                                                          : kind == ProcessKind::other_namespace ? "another_container"
                                                                                                 : "process"));
  v.field("name", known_text(process.name));
}

template <typename Visitor>
void describe(Visitor& v, const ListedDevice& device) {
  const DeviceInfo& info = device.info;
  const DeviceSample& sample = device.sample;
  v.type("ListedDevice", "A GPU, or a part of one.");
  v.field("vendor", info.vendor);
  v.field("index", info.index, "as the driver numbers them");
  v.field("instance_of", info.instance_of, "of a MIG instance: the GPU's index");
  v.field("name", info.name);
  v.field("uuid", known_text(info.uuid));
  v.field("bus_id", known_text(info.bus_id));
  v.field("mig_enabled", info.mig_enabled);
  v.field("visible_to_cuda", device.visible_to_cuda, "to programs with this environment");
  v.field("cuda_index", info.cuda_index, "that such a program gives it");
  v.field("error", known_text(device.error), "why there are no values");
  v.field("total_bytes", info.total_bytes);
  v.field("used_bytes", sample.used_bytes);
  v.field("driver_reserved_bytes", sample.driver_reserved_bytes);
  v.field("utilization_percent", sample.utilization_percent);
  v.field("temperature_celsius", sample.temperature_celsius);
  v.field("power_milliwatts", sample.power_milliwatts);
  v.field("processes", device.processes, "most bytes first; null: the driver does not say");
}

template <typename Visitor>
void describe(Visitor& v, const CgroupFacts& cgroup) {
  v.type("ListedCgroup", "The control group.");
  v.field("version", cgroup.version, "1 or 2");
  v.field("folder", cgroup.folder);
  v.field("limit_bytes", cgroup.limit_bytes);
  v.field("usage_bytes", cgroup.usage_bytes);
  v.field("oom_kills", cgroup.oom_kills);
}

namespace {

struct HostOfMachine {};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const Inventory& inventory, const HostOfMachine& /*tag*/) {
  v.type("ListedHost", "The host's memory.");
  v.field("total_bytes", inventory.host.total_bytes);
  v.field("available_bytes", inventory.host.available_bytes, "without swapping");
  v.field("cgroup", inventory.cgroup, "null: there are no control groups");
}

template <typename Visitor>
void describe(Visitor& v, const Inventory& inventory) {
  v.type("Devices", "The GPUs of a machine, their memory and processes.");
  v.field("drivers", inventory.drivers);
  v.field("cuda_visible_devices", inventory.cuda_visible_devices, "the variable of this process, as the next");
  v.field("cuda_device_order", inventory.cuda_device_order);
  v.field("visibility_problem", known_text(inventory.visibility_problem));
  v.field("devices", inventory.devices);
  v.field("host", in(inventory, HostOfMachine()));
}
TIDEMARK_DESCRIBED(Inventory);

template <typename Visitor>
void describe(Visitor& v, const Check& check, const Diagnosis& diagnosis) {
  v.type("DoctorCheck", "What was found about one thing.");
  v.field("name", [&] { return std::string(check.name); });
  v.field("status", named<kCheckStatusNames>(check.status));
  v.field("text", [&] { return check_text(check, diagnosis).text; });
  v.field(
      "advice",
      [&] {
        const std::string advice = check_text(check, diagnosis).advice;
        return advice.empty() ? std::optional<std::string>() : std::optional(advice);
      },
      "what to do; null: nothing");
}

template <typename Visitor>
void describe(Visitor& v, const Diagnosis& diagnosis) {
  v.type("Doctor", "What can be recorded on a machine.");
  v.field("problems", diagnosis.has_problem());
  v.field("checks", in(diagnosis.checks, diagnosis));
}
TIDEMARK_DESCRIBED(Diagnosis);

}  // namespace tidemark
