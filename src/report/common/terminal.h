// Where text goes: how wide it is, and whether it shows colours; progress on a terminal: "Reading run.tide: 45%".
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
  bool all = false;         ///< everything that a report can say (--all), not only what a first screen needs
  std::size_t rows = 5;     ///< of the longest list in a first screen
};

/// More than any screen shows. Who says more gets this much: what is drawn takes memory for each place.
inline constexpr std::size_t kMaxTerminalColumns = 1000;
inline constexpr std::size_t kMaxTerminalRows = 500;

/// Columns of the terminal; none where `descriptor` is no terminal, or one that does not say.
[[nodiscard]] std::optional<std::size_t> terminal_width(int descriptor);

/// Rows of it, likewise.
[[nodiscard]] std::optional<std::size_t> terminal_height(int descriptor);

/// Looks at a file descriptor. Colours only on a terminal, and not when NO_COLOR is set (https://no-color.org) or TERM
/// is "dumb"; the width from the terminal.
[[nodiscard]] Terminal detect_terminal(int descriptor);

enum class Tone : unsigned char { heading, quiet, warning, error };

/// `text` in the tone's colour, or as it is where there are no colours.
[[nodiscard]] std::string paint(const Terminal& terminal, Tone tone, std::string_view text);

/// Shows nothing in the first second, and nothing at all when stderr is no terminal. The line is erased when the
/// returned object (and all its copies) goes. `doing`: "Reading"; kept by reference.
[[nodiscard]] Progress make_progress(const std::string& path, const char* doing = "Reading");

}  // namespace tidemark
