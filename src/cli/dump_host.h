// The fields of samples of the host, for `dump`.
#pragma once

#include <nlohmann/json.hpp>

#include "trace/sample.h"

namespace tidemark::cli {

/// What recordings of earlier versions lack; empty where none of it is known.
[[nodiscard]] nlohmann::ordered_json host_usage_fields(const HostSample& sample);
[[nodiscard]] nlohmann::ordered_json host_parts_fields(const HostPartsSample& sample);
[[nodiscard]] nlohmann::ordered_json killed_fields(const KilledProcess& killed);

}  // namespace tidemark::cli
