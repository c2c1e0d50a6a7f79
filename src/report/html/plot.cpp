#include "report/html/plot.h"

#include <fmt/format.h>

#include <iterator>

namespace tidemark::html {

void open_plot(std::string& out, std::string_view style, std::string_view name, double height,
               const std::vector<MarginLabel>& margin) {
  fmt::format_to(std::back_inserter(out),
                 "<div class=\"plot {}\"><svg class=\"margin\" height=\"{:g}\" aria-hidden=\"true\">", style, height);
  for (const MarginLabel& label : margin) {
    fmt::format_to(std::back_inserter(out), "<text x=\"100%\" dx=\"-8\" y=\"{:.1f}\">{}</text>", label.y, label.words);
  }
  fmt::format_to(std::back_inserter(out), "</svg><svg role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{:g}\">\n",
                 name, height);
}

}  // namespace tidemark::html
