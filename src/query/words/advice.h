// Words for advice, the same in text and on a page.
#pragma once

#include <cstddef>
#include <string>

#include "analyze/advice/advice.h"

namespace tidemark {

/// The finding: "Gradients are held through the forward pass (10.0 MiB in 1 block at the peak)".
[[nodiscard]] std::string advice_finding(const Advice& advice);

/// The change: "call optimizer.zero_grad() right after optimizer.step()".
[[nodiscard]] std::string advice_change(const Advice& advice);

/// "saves 10.0 MiB of the peak (estimated from stacks and lifetimes)".
[[nodiscard]] std::string advice_saving(const Advice& advice);

/// "layers.{0-5}: checkpoint the layers (...)". `width`: of the place; 0 = unlimited.
[[nodiscard]] std::string advice_change_at(const Advice& advice, std::size_t width);

/// The saving of the change at the peak: "40.2 MiB", with "~" before an estimate.
[[nodiscard]] std::string saving_text(const Advice& advice);

/// The place: "layers.{0-5}", "head and 5 more", or the stack with the most bytes.
[[nodiscard]] std::string advice_place(const Advice& advice, std::size_t width = 0);

}  // namespace tidemark
