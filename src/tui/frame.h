// The whole screen: the bar of views, one of them, and the line of keys.
#pragma once

#include "tui/canvas.h"
#include "tui/state.h"
#include "tui/view.h"

namespace tidemark::tui {

inline constexpr std::size_t kMinWidth = 72;
inline constexpr std::size_t kMinHeight = 18;

/// Draws all of it; on a canvas that is too small, the required size.
void draw_frame(Canvas& canvas, const Content& content, const State& state);

}  // namespace tidemark::tui
