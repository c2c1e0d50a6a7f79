// Properties of the output terminal: width and colours; also progress on a terminal: "Reading run.tide: 45%".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace tidemark {

/// Default: a file or a pipe, without colours.
struct Terminal {
  bool colour = false;
  std::size_t width = 120;  ///< columns that tables keep to; 0 = unlimited
  bool all = false;         ///< the complete report (--all), not only the first screen
  std::size_t rows = 5;     ///< of the longest list in a first screen
};

/// More than any screen shows. Larger widths are reduced to this: drawings take memory for each place.
inline constexpr std::size_t kMaxTerminalColumns = 1000;
inline constexpr std::size_t kMaxTerminalRows = 500;

/// Columns of the terminal; nullopt if `descriptor` is no terminal, or does not report its width.
[[nodiscard]] std::optional<std::size_t> terminal_width(int descriptor);

/// Rows of the terminal; nullopt if unknown.
[[nodiscard]] std::optional<std::size_t> terminal_height(int descriptor);

/// Looks at a file descriptor. Colours only on a terminal, and not when NO_COLOR is set (https://no-color.org) or TERM
/// is "dumb"; the width from the terminal.
[[nodiscard]] Terminal detect_terminal(int descriptor);

enum class Tone : unsigned char { heading, quiet, warning, error };

/// `text` in the tone's colour, or unchanged without colours.
[[nodiscard]] std::string paint(const Terminal& terminal, Tone tone, std::string_view text);

/// Shows nothing in the first second, and nothing at all if stderr is not a terminal. The line is erased when the
/// returned object and all its copies are destroyed. `doing`: "Reading"; kept by reference.
[[nodiscard]] Progress make_progress(const std::string& path, const char* doing = "Reading");

}  // namespace tidemark
