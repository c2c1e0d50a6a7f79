// Accepts processes to be recorded: each connects and sends the memory that its collector writes to.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"

namespace tidemark {

/// A process that has connected. The kernel has checked its credentials; the content of its memory is unchecked.
struct Arrival {
  pid_t pid = 0;
  ScopedFd memory;
  std::string refused;  ///< why it cannot be recorded; it has no memory then; else empty
};

/// Not thread-safe. Never waits: a connection without a message is read again at each take().
class Reception {
 public:
  /// `listener`: from SocketFolder::listen(), non-blocking.
  explicit Reception(ScopedFd listener) : listener_(std::move(listener)) {}

  /// Appends the descriptors that become readable when a process connects.
  void add_to(std::vector<pollfd>& polled);
  /// Passes each process that has connected since to `admit`, one after the other: so the descriptors of one can be
  /// free for the next.
  void take(const std::function<void(Arrival)>& admit);
  /// Descriptors have become free: processes that could not be accepted without them can be now.
  void retry_listening() { listen_again_ = {}; }

 private:
  void read_arrival(ScopedFd connection, const std::function<void(Arrival)>& admit);

  ScopedFd listener_;
  std::chrono::steady_clock::time_point listen_again_;  ///< not polled before: no free descriptor for accept()
  std::vector<ScopedFd> greeting_;                      ///< accepted, first message not read yet
};

}  // namespace tidemark
