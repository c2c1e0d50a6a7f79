// Colours by meaning: the same in pictures and on the page, which also has them for dark screens.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

enum class Role : std::uint8_t {
  paper,
  ink,
  quiet,  ///< text that steps back: labels of axes
  rule,   ///< lines of a grid
  // Measures of an allocator.
  allocated,
  reserved,
  active,
  cached,
  alarm,  ///< failures
  // Memory beside it over time.
  driver,  ///< of libraries, from the CUDA driver
  rss,     ///< of the host
  pss,
  // Other owners in a ledger; five colours for libraries, in order.
  library1,
  library2,
  library3,
  library4,
  library5,
  other_libraries,
  context,
  processes,
  unexplained,
  // Call sites over time, largest first.
  site1,
  site2,
  site3,
  site4,
  site5,
  site6,
  site7,
  site8,
  other_sites,
  unrecorded,
  // Categories of memory, in the order of Category.
  parameters,
  buffers,
  gradients,
  per_sample_gradients,
  optimizer_state,
  activations,
  inputs,
  temporaries,
  workspaces,
  copies,
  unknown_category,
  // Phases of training, in the order of Phase, and alternating colours for steps.
  data_phase,
  forward_phase,
  backward_phase,
  recomputation_phase,
  optimizer_phase,
  even_step,
  odd_step,
  // Blocks of a segment map, beside allocated ones.
  pending_free,
  mixed,  ///< neighbours that are too narrow to be drawn one by one
  free,
  // Boxes of a flame graph.
  root,
  own,           ///< the project's Python code
  library_code,  ///< of PyTorch, other packages, and the standard library
  native,
  no_stack,
  // Cells of configurations that fit, measured and predicted.
  fits,
  fits_predicted,
  exceeds,
  exceeds_predicted,
  // Cells of a heat map, by how much of a device is used.
  heat1,
  heat2,
  heat3,
  heat4,
  heat5,
  heat6,
};
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::heat6) + 1;

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

/// On white paper.
[[nodiscard]] Colour colour_of(Role role);

/// The colour of text on an area of this role, on white paper: ink or paper, whichever has more contrast to it (WCAG
/// 2.1, "contrast ratio").
[[nodiscard]] Role text_role_on(Role area);

/// Its class in HTML: "allocated".
[[nodiscard]] const char* name_of(Role role);

/// A style sheet that gives every class of a role the colour --role, and every role a variable of its name; both follow
/// the reader's preference for light or dark.
[[nodiscard]] std::string palette_style();

}  // namespace tidemark
