// The usual mistakes behind leaks, in words.
#pragma once

#include <string_view>

#include "analyze/leaks/usual_mistake.h"
#include "base/ids.h"

namespace tidemark {

/// The mistake that a leak matches, and what to do: "losses are kept with their autograd graphs: keep loss.item() or
/// loss.detach()"; empty for none. `device`: where the memory is.
[[nodiscard]] std::string_view usual_mistake_text(UsualMistake mistake, Device device);

}  // namespace tidemark
