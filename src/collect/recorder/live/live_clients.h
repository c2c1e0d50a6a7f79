// Who reads recordings while they are written, from the recorder's side: each reader that connects is told which files
// there are, and again whenever that changes.
//
// A reader can slow nothing down: it gets a message where there is room for it and the latest one later, and whatever
// it sends ends its connection.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "collect/recorder/live/live_message.h"

namespace tidemark {

/// Not thread-safe. Never waits, and wakes nobody: it is asked whenever the recorder wakes up for its programs.
class LiveClients {
 public:
  static constexpr std::size_t kMaxClients = 16;

  /// `listener`: of SocketFolder::listen(), not blocking.
  explicit LiveClients(ScopedFd listener) : listener_(std::move(listener)) {}

  /// Takes in readers of the same user, and lets those go that have gone.
  void welcome();
  [[nodiscard]] bool any() const { return !clients_.empty(); }
  /// Tells those who have not been told.
  void tell(std::span<const LiveRecording> recordings);

 private:
  struct Client {
    ScopedFd connection;
    std::string told;
  };

  ScopedFd listener_;
  std::vector<Client> clients_;
};

}  // namespace tidemark
