// The fields of samples of the host, for `dump`.
#pragma once

#include <nlohmann/json.hpp>

#include "trace/host_sample.h"

namespace tidemark::cli {

[[nodiscard]] nlohmann::ordered_json host_parts_fields(const HostPartsSample& sample);
[[nodiscard]] nlohmann::ordered_json killed_fields(const KilledProcess& killed);

}  // namespace tidemark::cli
