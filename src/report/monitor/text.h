// The reports of commands that watch a machine, as text.
#pragma once

#include <string>

#include "monitor/watch_reports.h"
#include "report/common/terminal.h"

namespace tidemark {

[[nodiscard]] std::string to_text(const ProfileReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const OomReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const LeakReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const FragmentReport& report, const Terminal& terminal);

}  // namespace tidemark
