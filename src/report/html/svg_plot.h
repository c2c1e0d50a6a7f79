// Plots as SVG elements of a page.
#pragma once

#include <string>

#include "report/plot/plot.h"

namespace tidemark::html {

/// The legend, the plot and its remark. It fits every width: what the plot gives as a share of its width becomes a
/// percentage, letters and lines keep their size. Colours are classes of the palette's roles. `style`: a class of the
/// style sheet.
void add_plot(std::string& out, const Plot& plot, const char* style);

}  // namespace tidemark::html
