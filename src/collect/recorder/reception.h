// Takes in the processes that want to be recorded: each connects and sends the memory that its collector writes to.
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

/// A process that has connected. What it says of itself was checked by the kernel; what its memory holds was not.
struct Arrival {
  pid_t pid = 0;
  ScopedFd memory;
  std::string refused;  ///< why it cannot be recorded, and has no memory; else empty
};

/// Not thread-safe. Waits for nobody: who connects and says nothing is asked again at each take().
class Reception {
 public:
  /// `listener`: of SocketFolder::listen(), not blocking.
  explicit Reception(ScopedFd listener) : listener_(std::move(listener)) {}

  /// Appends what is readable when somebody comes.
  void add_to(std::vector<pollfd>& polled);
  /// Gives those to `admit` who have come since, one after the other: so the descriptors of each can be free for the
  /// next.
  void take(const std::function<void(Arrival)>& admit);
  /// Descriptors have become free: whoever could not be taken in for want of them can be now.
  void retry_listening() { listen_again_ = {}; }

 private:
  void read_arrival(ScopedFd connection, const std::function<void(Arrival)>& admit);

  ScopedFd listener_;
  std::chrono::steady_clock::time_point listen_again_;  ///< not polled before: there was no descriptor to accept with
  std::vector<ScopedFd> greeting_;                      ///< accepted, first message not read yet
};

}  // namespace tidemark
