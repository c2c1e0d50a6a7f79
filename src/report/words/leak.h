// Leaks in words, for text and HTML alike.
#pragma once

#include <string>

#include "analyze/leaks/leaks.h"

namespace tidemark {

/// "Leak: 1 call site grows by 64.0 KiB per step", "No leak: ...", or "Insufficient data: ..." with the reason.
[[nodiscard]] std::string leak_verdict(const Leaks& leaks);

/// "2 smaller leaks, 768 B per step in total; `--min-growth 0` lists them"; empty without any.
[[nodiscard]] std::string small_leaks_text(const Leaks& leaks);

/// "Training steps: 60, from 1.2 s to 6.7 s; a step starts at ...\n"; empty without steps.
[[nodiscard]] std::string leak_steps(const Leaks& leaks);

/// The reason why growth is not a leak; empty where it is one.
[[nodiscard]] std::string growth_text(const Growth& growth);

/// Bytes per step, which may be fractions: "51.2 B".
[[nodiscard]] std::string rate_text(double bytes);

}  // namespace tidemark
