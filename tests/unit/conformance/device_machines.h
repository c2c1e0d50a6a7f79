// Machines with GPUs for the suite of DeviceSource: fakes with known values, and the one the tests run on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "collect/machine/device_source.h"
#include "temporary_folder.h"

namespace tidemark::testing {

/// Expected values for a device of a fake machine.
struct ExpectedDevice {
  DeviceInfo info;
  DeviceSample sample;
  std::optional<std::vector<SampledProcess>> processes;
};

class DeviceMachine {
 public:
  virtual ~DeviceMachine() = default;
  /// Null: there is no such GPU here.
  virtual std::unique_ptr<DeviceSource> open() = 0;
  /// Empty for real machines, which have no known values.
  [[nodiscard]] virtual std::vector<ExpectedDevice> expected() const { return {}; }
  /// Makes the first device go away, while a source is open; false if that cannot be done.
  virtual bool lose_first() { return false; }
  /// From the next open() on, the first device exists but answers no other call.
  virtual bool silence_first() { return false; }
};

struct MachineKind {
  const char* name;
  std::function<std::unique_ptr<DeviceMachine>()> make;
};

inline void PrintTo(const MachineKind& kind, std::ostream* out) {
  *out << kind.name;
}

/// All machines the suite runs on.
[[nodiscard]] std::vector<MachineKind> device_machines();

}  // namespace tidemark::testing
