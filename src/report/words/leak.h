// Leaks in words, for text and HTML alike.
#pragma once

#include <string>

#include "analyze/leaks/leaks.h"

namespace tidemark {

/// "Leak: 1 place grows by 64.0 KiB a step", "No leak: ...", or "Not enough data: ..." and why.
[[nodiscard]] std::string leak_verdict(const Leaks& leaks);

/// "Steps: 60, from 1.2 s to 6.7 s, each beginning ...\n"; empty without steps.
[[nodiscard]] std::string leak_steps(const Leaks& leaks);

/// Why growth is no leak; empty where it is one.
[[nodiscard]] std::string growth_finding(const Growth& growth);

/// Bytes a step may be fractions: "51.2 B".
[[nodiscard]] std::string rate_text(double bytes);

}  // namespace tidemark
