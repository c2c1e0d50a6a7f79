#include "report/chart/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/chart/surface.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

constexpr double kWidth = 1200;
constexpr double kHeader = 84;
constexpr double kFooter = 44;
constexpr double kLeft = 96;
constexpr double kRight = 36;
constexpr Font kQuiet = {13, false, colours::kQuiet};

}  // namespace

Result<std::string> draw_page(const ChartPage& page, ChartFormat format,
                              const std::function<void(Canvas&, std::size_t, const Box&)>& draw) {
  if (page.panels > kMaxPanels) {
    return Error{fmt::format("a chart of {} devices would be unreadable; draw at most {} at a time (--device)",
                             page.panels, kMaxPanels)};
  }
  // A few panels get room; many share what is still legible.
  const double panel_height = page.extra + (page.panels <= 1 ? 420 : page.panels <= 4 ? 280 : 190);
  const double height = kHeader + panel_height * static_cast<double>(std::max<std::size_t>(page.panels, 1)) + kFooter;
  return draw_picture(kWidth, height, format, [&](Canvas& canvas) {
    canvas.text(page.title, kLeft, 36, {22, true, colours::kInk});
    canvas.text(canvas.fit(printable(page.what), kWidth - kLeft - kRight, kQuiet), kLeft, 58, kQuiet);
    for (std::size_t panel = 0; panel < page.panels; ++panel) {
      const double top = kHeader + panel_height * static_cast<double>(panel);
      draw(canvas, panel, {kLeft, top, kWidth - kLeft - kRight, panel_height});
    }
    if (page.panels == 0) canvas.text(page.nothing, kLeft, kHeader + 40, {15, false, colours::kInk});
  });
}

std::string recordings_words(const RecordingInfo& first, std::size_t count) {
  std::string words = first.process.command_line;
  if (count > 1) words += fmt::format("  ({} recordings)", count);
  return words;
}

}  // namespace tidemark
