// The whole screen: the bar of views, one of them, and the line of keys.
#pragma once

#include "screen/canvas.h"
#include "screen/state.h"
#include "screen/view.h"

namespace tidemark::screen {

inline constexpr std::size_t kLeastWidth = 72;
inline constexpr std::size_t kLeastHeight = 18;

/// Draws all of it; on a canvas that is too small, the size that is needed.
void draw_frame(Canvas& canvas, const Content& content, const State& state);

}  // namespace tidemark::screen
