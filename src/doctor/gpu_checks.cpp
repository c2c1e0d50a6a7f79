#include <algorithm>

#include "doctor/diagnosis.h"

namespace tidemark {
namespace {

void check_driver(const ListedDriver& driver, Diagnosis& diagnosis) {
  if (!driver.problem.empty()) {
    diagnosis.checks.push_back({"driver", Finding::driver_failed, CheckStatus::problem, driver.problem});
    return;
  }
  diagnosis.checks.push_back({"driver", Finding::driver_works, CheckStatus::ok, driver.version});
  const auto& devices = diagnosis.inventory.devices;
  const bool has_devices = std::any_of(devices.begin(), devices.end(),
                                       [&](const ListedDevice& device) { return device.info.vendor == driver.vendor; });
  if (!has_devices) diagnosis.checks.push_back({"gpu", Finding::gpu_absent, CheckStatus::warning, {}});
}

Check check_gpu(const ListedDevice& device, std::size_t index) {
  Check check{"gpu", Finding::gpu_works, CheckStatus::ok, {}, 0, index};
  const bool divided = device.info.mig_enabled.value_or(false);  // its instances report the used memory
  if (!device.error.empty()) {
    check.finding = Finding::gpu_failed;
    check.status = CheckStatus::problem;
    check.subject = device.error;
  } else if (!device.sample.used_bytes && !divided) {
    check.finding = Finding::gpu_memory_unknown;
    check.status = CheckStatus::warning;
  }
  return check;
}

}  // namespace

bool has_nvidia_gpu(const Inventory& inventory) {
  return std::any_of(inventory.devices.begin(), inventory.devices.end(),
                     [](const ListedDevice& device) { return device.info.vendor == "nvidia"; });
}

void check_gpus(Diagnosis& diagnosis) {
  const Inventory& inventory = diagnosis.inventory;
  for (const ListedDriver& driver : inventory.drivers) check_driver(driver, diagnosis);
  for (std::size_t n = 0; n < inventory.devices.size(); ++n) {
    diagnosis.checks.push_back(check_gpu(inventory.devices[n], n));
  }
  if (inventory.drivers.empty()) {
    diagnosis.checks.push_back({"driver", Finding::driver_absent, CheckStatus::warning, {}});
  }
  if (!inventory.visibility_problem.empty()) {
    diagnosis.checks.push_back(
        {"visible_devices", Finding::gpus_hidden, CheckStatus::warning, inventory.visibility_problem});
  }
}

}  // namespace tidemark
