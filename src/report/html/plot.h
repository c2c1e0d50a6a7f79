// A drawing with a scale at its left that fits every width: lengths are shares of the width, letters keep their size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::html {

/// A word in the margin at the left, `y` pixels from the top.
struct MarginLabel {
  double y = 0;
  std::string words;  ///< HTML
};

/// Opens the two SVGs, `height` pixels high, and writes the margin; the drawing follows, then kPlotEnd. `name` says
/// what it shows to those who do not see it, as HTML.
void open_plot(std::string& out, std::string_view style, std::string_view name, double height,
               const std::vector<MarginLabel>& margin);
inline constexpr std::string_view kPlotEnd = "</svg></div>\n";

}  // namespace tidemark::html
