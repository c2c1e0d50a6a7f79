// The machine's devices as text and JSON.
#pragma once

#include <string>

#include "collect/machine/inventory.h"
#include "report/terminal.h"

namespace tidemark::cli {

[[nodiscard]] std::string devices_text(const Inventory& inventory, const Terminal& terminal);
[[nodiscard]] std::string devices_json(const Inventory& inventory);

/// "12.3 GiB available of 31.3 GiB; …": shared with `doctor`.
[[nodiscard]] std::string host_memory_text(const HostMemory& host, const std::optional<Cgroup>& cgroup);

}  // namespace tidemark::cli
