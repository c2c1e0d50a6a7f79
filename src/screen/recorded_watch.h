// Follows the recordings that are under way on this machine, on a thread of its own: who holds their memory, and what
// the analyses find in the last minute of each.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "screen/recorded_process.h"

namespace tidemark::screen {

/// Used by one thread, which is never kept waiting. A recording is read from its beginning when it is first followed;
/// results come every two seconds, less often where they take longer than a tenth of that. At most 8 recordings.
class RecordedWatch {
 public:
  RecordedWatch();
  /// Waits for what is being read, a fraction of a second.
  ~RecordedWatch();
  RecordedWatch(const RecordedWatch&) = delete;
  RecordedWatch& operator=(const RecordedWatch&) = delete;

  /// Begins, once. Before, recordings cost nothing.
  void start();
  [[nodiscard]] bool started() const { return started_; }
  /// Whether somebody looks at results: without that, recordings are read, and not analysed.
  void want(bool wanted);
  /// What came since the last call; none where nothing did.
  [[nodiscard]] std::optional<std::vector<RecordedProcess>> take();

 private:
  struct Shared;  ///< with the thread
  std::unique_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace tidemark::screen
