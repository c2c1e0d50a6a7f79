// The contract of a view, and the list of them. A new view is one file and one line in views.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/machine_state.h"
#include "monitor/watch_reports.h"
#include "tui/canvas.h"
#include "tui/process_results.h"

namespace tidemark::tui {

/// A moment that was marked with a key; its name is printable.
using Mark = WatchMark;

/// Data to show. Outlives the views.
struct Content {
  const MachineState& machine;
  std::span<const ProcessResults> recorded;
  std::span<const Mark> marks;
  std::optional<std::uint64_t> cuda_pinned_bytes = {};  ///< of the recorded processes; nullopt if unknown
  std::uint64_t interval_ns = 0;                        ///< between two samples
};

inline constexpr std::size_t kNoRow = ~std::size_t{0};

/// The user's position in a view.
struct ViewState {
  std::size_t selected = 0;  ///< row; may be beyond the last: then it is the last. kNoRow: text, with everything
  std::size_t order = 0;     ///< of View::orders
  std::size_t other = 0;     ///< selection by the left and right keys: a time span, a process; may be beyond the last
};

struct View {
  const char* name = "";   ///< as the prompt's command, in lower case
  const char* title = "";  ///< as in the bar at the top
  const char* keys = "";   ///< its own keys, for the line at the bottom
  /// Choices of the key s, as arguments of the prompt; empty if there are none.
  std::span<const char* const> orders = {};
  bool of_recordings = false;  ///< shows recorded data
  /// How many rows can be selected.
  std::size_t (*rows)(const Content&, const ViewState&) = nullptr;
  /// Number of choices for the left and right keys; null if there are none.
  std::size_t (*others)(const Content&) = nullptr;
  void (*draw)(const Region&, const Content&, const ViewState&) = nullptr;
};

inline constexpr std::size_t kViews = 6;
inline constexpr std::size_t kDevicesView = 0;  ///< position in views()
inline constexpr std::size_t kProcessesView = 1;
/// In the order of their keys.
[[nodiscard]] const std::array<View, kViews>& views();

/// The selected row, within the number of rows.
[[nodiscard]] constexpr std::size_t row_of(std::size_t selected, std::size_t rows) {
  if (selected == kNoRow) return kNoRow;
  return rows == 0 ? 0 : selected < rows ? selected : rows - 1;
}

[[nodiscard]] View devices_view();
[[nodiscard]] View processes_view();
[[nodiscard]] View charts_view();
[[nodiscard]] View holders_view();
[[nodiscard]] View findings_view();
[[nodiscard]] View host_view();

}  // namespace tidemark::tui
