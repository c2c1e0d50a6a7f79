// The views, for the list of them.
#pragma once

#include "tui/view.h"

namespace tidemark::tui {

[[nodiscard]] View devices_view();
[[nodiscard]] View processes_view();
[[nodiscard]] View charts_view();
[[nodiscard]] View holders_view();
[[nodiscard]] View findings_view();
[[nodiscard]] View host_view();

}  // namespace tidemark::tui
