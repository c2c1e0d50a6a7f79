// Words for advice, the same in text and on a page.
#pragma once

#include <cstddef>
#include <string>

#include "analyze/advice/advice.h"

namespace tidemark {

/// What was found: "Gradients are held through the forward pass (10.0 MiB in 1 block at the peak)".
[[nodiscard]] std::string advice_finding(const Advice& advice);

/// What to change: "call optimizer.zero_grad() right after optimizer.step()".
[[nodiscard]] std::string advice_change(const Advice& advice);

/// "saves 10.0 MiB of the peak (estimated from stacks and lifetimes)".
[[nodiscard]] std::string advice_saving(const Advice& advice);

/// "layers.{0-5}: checkpoint the layers (...)". `width`: of the place; 0 = unlimited.
[[nodiscard]] std::string advice_change_at(const Advice& advice, std::size_t width);

/// What the change saves of the peak: "40.2 MiB", with "~" before an estimate.
[[nodiscard]] std::string saving_text(const Advice& advice);

/// Where: "layers.{0-5}", "head and 5 more", or the stack of most bytes.
[[nodiscard]] std::string advice_place(const Advice& advice, std::size_t width = 0);

}  // namespace tidemark
