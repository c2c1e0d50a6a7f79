// A picture's bytes: one drawing for every format.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "report/chart/canvas.h"
#include "report/chart/chart.h"

namespace tidemark {

/// Calls `draw` once with a white canvas of `width` by `height` units (a PNG has two pixels for each) and returns the
/// file's bytes, or an error when cairo fails.
Result<std::string> draw_picture(double width, double height, ChartFormat format,
                                 const std::function<void(Canvas&)>& draw);

}  // namespace tidemark
