// The machine's devices as text and JSON.
#pragma once

#include <string>

#include "collect/machine/inventory.h"
#include "report/text/terminal.h"

namespace tidemark::cli {

[[nodiscard]] std::string devices_text(const Inventory& inventory, const Terminal& terminal);
[[nodiscard]] std::string devices_json(const Inventory& inventory);

/// "GPU 0: NVIDIA H100", "GPU 0 instance 1: ..."; not safe to print.
[[nodiscard]] std::string device_title(const DeviceInfo& info);

/// "12.3 GiB available of 31.3 GiB; …": shared with `doctor`, as is device_title().
[[nodiscard]] std::string host_memory_text(const HostMemory& host, const std::optional<Cgroup>& cgroup);

}  // namespace tidemark::cli
