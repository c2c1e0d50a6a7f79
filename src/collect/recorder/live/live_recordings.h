// The recordings of this user that are under way on this machine, as their recorders tell (live_message.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "collect/recorder/live/live_message.h"

namespace tidemark {

/// A recorder that tells what it writes. As long as this lives, it writes every 100 ms instead of every second. Not
/// thread-safe.
class LiveRecorder {
 public:
  /// Connects to the socket in a recorder's folder. None where nobody of this user listens. Does not wait.
  static std::optional<LiveRecorder> connect(const std::string& socket);

  /// Takes what the recorder said since. False once it is gone. Does not wait.
  bool update();
  /// The latest; empty before the first message, and where nothing is recorded.
  [[nodiscard]] const std::vector<LiveRecording>& recordings() const { return recordings_; }
  [[nodiscard]] bool heard() const { return heard_; }
  /// Readable when there is something for update().
  [[nodiscard]] int descriptor() const { return connection_.get(); }

 private:
  explicit LiveRecorder(ScopedFd connection) : connection_(std::move(connection)) {}

  ScopedFd connection_;
  std::vector<LiveRecording> recordings_;
  bool heard_ = false;
};

/// All of them that answer within `patience`; those of programs that were started with another TMPDIR are not found.
[[nodiscard]] std::vector<LiveRecorder> find_live_recorders(
    std::chrono::milliseconds patience = std::chrono::milliseconds(500));

/// What they write, by pid.
[[nodiscard]] std::vector<LiveRecording> find_live_recordings();

/// Not thread-safe. Never waits, and wakes nobody: it is asked whenever the recorder wakes up for its programs.
class LiveClients {
 public:
  static constexpr std::size_t kMaxClients = 16;

  /// `listener`: of SocketFolder::listen(), not blocking.
  explicit LiveClients(ScopedFd listener) : listener_(std::move(listener)) {}

  /// Takes in readers of the same user, and lets those go that have gone.
  void welcome();
  [[nodiscard]] std::size_t count() const { return clients_.size(); }
  /// Tells those who have not been told.
  void send(std::span<const LiveRecording> recordings);

 private:
  struct Client {
    ScopedFd connection;
    std::string told;
  };

  ScopedFd listener_;
  std::vector<Client> clients_;
};

}  // namespace tidemark
