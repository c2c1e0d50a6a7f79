#include "report/html/markup.h"

#include <fmt/format.h>

#include <iterator>

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

}  // namespace tidemark::html
