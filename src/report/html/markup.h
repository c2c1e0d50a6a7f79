// The few pieces of HTML and SVG that the sections of a page are made of. Everything appends bytes; names from a
// recording pass through escaped() and nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/common/stack_names.h"
#include "report/plot/plot.h"
#include "trace/event.h"

namespace tidemark::html {

/// `text` for an element or an attribute: printable (see there), at most 400 columns, with & < > " ' as entities.
[[nodiscard]] std::string escaped(std::string_view text);

/// "12.345%" of a length.
[[nodiscard]] std::string percent(double share);

/// <section id> with its heading and one sentence on its content; `lead` is HTML. Close with kSectionEnd.
void open_section(std::string& out, const std::string& id, std::string_view title, std::string_view lead);
inline constexpr std::string_view kSectionEnd = "</section>\n";

/// The heading of a device within a section.
void add_device_heading(std::string& out, const Device& device, std::string_view detail = {});

/// One line for the stack; it opens to all frames, innermost first, as a traceback reads backwards.
void add_stack(std::string& out, const NamedStack& stack);

/// A headline number within <dl class="figures">; all are HTML. `colour` is a class, such as "allocated".
void add_figure(std::string& out, std::string_view label, std::string_view value, std::string_view detail,
                std::string_view colour = {});

/// Opens a table with these headings, as HTML; the last column is for text, the others for numbers.
void open_table(std::string& out, const std::vector<std::string>& headings);
/// The same with a last column for stacks, which are on a separate line on a narrow screen.
void open_stack_table(std::string& out, const std::vector<std::string>& headings);
/// Adds a row; `cells` are HTML.
void add_row(std::string& out, const std::vector<std::string>& cells);
inline constexpr std::string_view kTableEnd = "</tbody></table></div>\n";
/// add_stack() as a cell.
[[nodiscard]] std::string stack_cell(const NamedStack& stack);

/// A remark below a table or picture: omitted items, and how to see them. `words` is HTML.
void add_remark(std::string& out, std::string_view words);

/// The legend, the plot and its remark. It fits every width: shares of the plot's width become percentages, letters and
/// lines keep their size. Colours are classes of the palette's roles. `style`: a class of the style sheet.
void add_plot(std::string& out, const Plot& plot, const char* style);

}  // namespace tidemark::html
