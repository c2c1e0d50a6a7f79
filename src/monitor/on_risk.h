// Callbacks for a risk: monitor.add_listener(on_risk(RiskLevel::high, [](const RiskChange& change) { … })).
#pragma once

#include "monitor/risk_notifier.h"

namespace tidemark {

/// A listener that calls `act` when a risk rises to `least` or above, or from there further.
[[nodiscard]] RiskListener on_risk(RiskLevel least, RiskListener act);

}  // namespace tidemark
