#include "report/html/markup.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"

namespace tidemark::html {
namespace {

constexpr std::size_t kMaxColumns = 400;

std::string place_of(const FrameName& frame) {
  if (frame.file.empty()) return {};
  return frame.line == 0 ? escaped(frame.file) : fmt::format("{}:{}", escaped(frame.file), frame.line);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : fit(printable(text), kMaxColumns)) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += letter;
    }
  }
  return safe;
}

std::string percent(double share) {
  return fmt::format("{:.5g}%", share * 100);
}

void open_section(std::string& out, const std::string& id, std::string_view title, std::string_view lead) {
  fmt::format_to(std::back_inserter(out), "<section id=\"{}\">\n<h3>{}</h3>\n<p class=\"lead\">{}</p>\n", id, title,
                 lead);
}

void add_device_heading(std::string& out, const Device& device, std::string_view detail) {
  fmt::format_to(std::back_inserter(out), "<h4>{}", escaped(to_string(device)));
  if (!detail.empty()) fmt::format_to(std::back_inserter(out), " <small>{}</small>", detail);
  out += "</h4>\n";
}

void add_stack(std::string& out, const NamedStack& stack) {
  const std::string label = escaped(place_text(stack));
  if (stack.frames.empty()) {
    out += label;
    return;
  }
  fmt::format_to(std::back_inserter(out), "<details><summary>{}<small>{}</small></summary><ol class=\"frames\">", label,
                 escaped(callers_text(stack)));
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    fmt::format_to(std::back_inserter(out), "<li{}><code>{}</code> <small>{}</small></li>",
                   is_project_code(*frame) ? " class=\"own\"" : "", escaped(frame->function + compiled_text(*frame)),
                   place_of(*frame));
  }
  out += "</ol></details>";
}

void add_figure(std::string& out, std::string_view label, std::string_view value, std::string_view detail,
                std::string_view colour) {
  fmt::format_to(std::back_inserter(out), "<div{}><dt>{}</dt><dd>{}</dd><dd class=\"detail\">{}</dd></div>\n",
                 colour.empty() ? std::string() : fmt::format(" class=\"{}\"", colour), label, value, detail);
}

namespace {

void open_table_of(std::string& out, std::string_view style, const std::vector<std::string>& headings) {
  fmt::format_to(std::back_inserter(out), "<div class=\"scroll\"><table{}><thead><tr>", style);
  for (std::size_t index = 0; index < headings.size(); ++index) {
    const bool text = index + 1 == headings.size();
    fmt::format_to(std::back_inserter(out), "<th{}>{}</th>", text ? "" : " class=\"number\"", headings[index]);
  }
  out += "</tr></thead><tbody>\n";
}

}  // namespace

void open_table(std::string& out, const std::vector<std::string>& headings) {
  open_table_of(out, {}, headings);
}

void open_stack_table(std::string& out, const std::vector<std::string>& headings) {
  open_table_of(out, fmt::format(" class=\"stacks numbers{}\"", headings.size() - 1), headings);
}

void add_row(std::string& out, const std::vector<std::string>& cells) {
  out += "<tr>";
  for (std::size_t index = 0; index < cells.size(); ++index) {
    const bool text = index + 1 == cells.size();
    fmt::format_to(std::back_inserter(out), "<td{}>{}</td>", text ? " class=\"stack\"" : " class=\"number\"",
                   cells[index]);
  }
  out += "</tr>\n";
}

std::string stack_cell(const NamedStack& stack) {
  std::string cell;
  add_stack(cell, stack);
  return cell;
}

void add_remark(std::string& out, std::string_view words) {
  fmt::format_to(std::back_inserter(out), "<p class=\"remark\">{}</p>\n", words);
}

namespace {

using namespace plot_layout;

constexpr double kUnits = 10'000;  // of the stretched drawing of the curves, in both directions

const char* anchor_of(PlotAlign align) {
  return align == PlotAlign::start ? "start" : align == PlotAlign::end ? "end" : "middle";
}

class Drawing {
 public:
  Drawing(std::string& out, const Plot& plot) : out_(out), plot_(plot) {}

  void draw(const char* style) {
    add("<div class=\"plot {}\">", style);
    if (!plot_.margin.empty()) margin();
    add("<svg role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{:g}\">\n", escaped(plot_.description),
        plot_.height);
    axes();
    if (!plot_.curves.empty()) curves();
    for (const PlotBox& box : plot_.boxes) add_box(box);
    for (const PlotHint& hint : plot_.hints) {
      add("<rect class=\"hint\" x=\"{}\" y=\"{:g}\" width=\"{}\" height=\"{:g}\">{}</rect>", percent(hint.x),
          plot_.frame_top, percent(hint.width), plot_.frame_height, title(hint.tooltip));
    }
    for (const PlotMark& mark : plot_.marks) {
      add("<g class=\"mark {0}\">{1}<line x1=\"{2}\" x2=\"{2}\" y1=\"{3:g}\" y2=\"{4:g}\"/><circle cx=\"{2}\" "
          "cy=\"{3:g}\" r=\"4\"/></g>\n",
          name_of(mark.role), title(mark.tooltip), percent(mark.x), plot_.frame_top, plot_.frame_bottom());
    }
    if (plot_.label) add_label(*plot_.label);
    out_ += "</svg></div>\n";
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  static std::string title(const std::vector<std::string>& lines) {
    if (lines.empty()) return {};
    std::string text = "<title>";
    for (const std::string& line : lines) text += (text.back() == '>' ? "" : "\n") + escaped(line);
    return text + "</title>";
  }

  static std::string words_of(const std::vector<std::string>& parts) {
    std::string words;
    for (const std::string& part : parts) words += "<tspan>" + escaped(part) + "</tspan>";
    return words;
  }

  void margin() {
    add("<svg class=\"margin\" height=\"{:g}\" aria-hidden=\"true\">", plot_.height);
    for (const PlotTick& tick : plot_.margin) {
      add("<text x=\"100%\" dx=\"{:g}\" y=\"{:.1f}\">{}</text>", -kMarginGap, tick.at + kBaseline, escaped(tick.label));
    }
    out_ += "</svg>";
  }

  void axes() {
    if (plot_.grid) {
      for (const PlotTick& tick : plot_.margin) {
        if (tick.at < plot_.frame_top) continue;
        add("<line class=\"grid\" x2=\"100%\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", tick.at);
      }
    }
    const double bottom = plot_.frame_bottom();
    for (std::size_t index = 0; index < plot_.ticks.size(); ++index) {
      const PlotTick& tick = plot_.ticks[index];
      add("<line class=\"axis\" x1=\"{0}\" x2=\"{0}\" y1=\"{1:g}\" y2=\"{2:g}\"/>", percent(tick.at), bottom,
          bottom + kTickLength);
      // Every other label is hidden on a narrow screen.
      add("<text{} x=\"{}\" y=\"{:g}\" text-anchor=\"{}\">{}</text>\n", index % 2 == 1 ? " class=\"odd\"" : "",
          percent(tick.at), bottom + kTickBaseline, anchor_of(tick.align), escaped(tick.label));
    }
  }

  // Paths cannot use percentages: curves are drawn in abstract units and stretched to the frame.
  void curves() {
    add("<svg y=\"{:g}\" width=\"100%\" height=\"{:g}\" viewBox=\"0 0 {:g} {:g}\" preserveAspectRatio=\"none\">",
        plot_.frame_top, plot_.frame_height, kUnits, kUnits);
    for (const PlotCurve& curve : plot_.curves) {
      std::string line;
      std::string area;
      for (const std::vector<PlotPoint>& run : curve.runs) {
        const std::string path = path_of(run);
        line += path;
        area += fmt::format("{}V{:g}H{:.0f}Z", path, kUnits, run.front().x * kUnits);
      }
      if (line.empty()) continue;
      if (curve.fill_opacity > 0) {
        add("<path class=\"area {}\" fill-opacity=\"{:g}\" d=\"{}\"/>", name_of(curve.role), curve.fill_opacity, area);
      }
      if (curve.thickness > 0) {
        add("<path class=\"{}\" stroke-width=\"{:g}\" d=\"{}\"/>", name_of(curve.role), curve.thickness, line);
      }
    }
    out_ += "</svg>\n";
  }

  [[nodiscard]] std::string path_of(const std::vector<PlotPoint>& run) const {
    const auto height = [&](const PlotPoint& point) {
      return (point.y - plot_.frame_top) / plot_.frame_height * kUnits;
    };
    std::string path = fmt::format("M{:.0f} {:.0f}", run.front().x * kUnits, height(run.front()));
    for (std::size_t index = 1; index < run.size(); ++index) {
      fmt::format_to(std::back_inserter(path), "H{:.0f}V{:.0f}", run[index].x * kUnits, height(run[index]));
    }
    return path;
  }

  void add_box(const PlotBox& box) {
    const std::string style = std::string(name_of(box.role)) + (box.dashed ? " dashed" : "");
    const std::string x = percent(box.x);
    const std::string width = percent(box.width);
    if (box.label.empty()) {
      add("<rect class=\"{}{}\" x=\"{}\" width=\"{}\" y=\"{:g}\" height=\"{:g}\">{}</rect>\n", style,
          box.narrow() ? " narrow" : "", x, width, box.y, box.height, title(box.tooltip));
      return;
    }
    // The label is clipped at the box's edges, and left out for boxes without room; page.js hides the parts that do not
    // fit.
    add("<svg class=\"{}{}\" x=\"{}\" y=\"{:g}\" width=\"{}\" height=\"{:g}\">{}<rect width=\"100%\" "
        "height=\"100%\"/><text x=\"4\" y=\"13\">{}</text></svg>\n",
        style,
        box.width < 0.02   ? " s"
        : box.width < 0.09 ? " m"
                           : "",
        x, box.y, width, box.height, title(box.tooltip), words_of(box.label));
  }

  void add_label(const PlotLabel& label) {
    add("<circle class=\"label {}\" cx=\"{}\" cy=\"{:.1f}\" r=\"{:g}\"/>", name_of(label.role), percent(label.at.x),
        label.at.y, kDot);
    add("<text class=\"label\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", percent(label.at.x),
        label.at.y - kLabelBaseline, anchor_of(label.align), escaped(label.words));
  }

  std::string& out_;
  const Plot& plot_;
};

const char* class_of(PlotKey::Sample sample) {
  return sample == PlotKey::Sample::line ? " line" : sample == PlotKey::Sample::area ? " area" : "";
}

}  // namespace

void add_plot(std::string& out, const Plot& plot, const char* style) {
  if (!plot.legend.empty()) {
    out += "<p class=\"legend\">";
    for (const PlotKey& key : plot.legend) {
      fmt::format_to(std::back_inserter(out), "<span><i class=\"{}{}\"></i>{}</span>", name_of(key.role),
                     class_of(key.sample), escaped(key.words));
    }
    out += "</p>\n";
  }
  Drawing(out, plot).draw(style);
  if (!plot.remark.empty()) add_remark(out, escaped(plot.remark));
}

}  // namespace tidemark::html
