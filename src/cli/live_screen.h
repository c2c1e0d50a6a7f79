// Text that is shown again and again: in place on a terminal, one block after the other elsewhere.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "report/common/terminal.h"

namespace tidemark::cli {

/// Not thread-safe. One at a time.
class LiveScreen {
 public:
  /// stdout, as it is.
  LiveScreen();
  /// The last text stays, whole, above the cursor.
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  [[nodiscard]] bool in_place() const { return in_place_; }
  /// For the next text: its width is that of now.
  [[nodiscard]] static Terminal terminal();

  /// Replaces what is shown. On a terminal, what does not fit below the first lines is left out, and counted. Fails
  /// where stdout cannot be written.
  Result<void> show(std::string text);

 private:
  bool in_place_;
  bool first_ = true;
  std::string latest_;  // in place only
};

/// What of `text` a screen of so many rows shows, in place of what was there.
[[nodiscard]] std::string screen_text(const std::string& text, std::size_t rows);

}  // namespace tidemark::cli
