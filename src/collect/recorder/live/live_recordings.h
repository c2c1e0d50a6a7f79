// The recordings of this user in progress on this machine, as reported by their recorders (live_message.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "collect/recorder/live/live_message.h"

namespace tidemark {

/// A connection to a recorder that reports the files it writes. While it exists, the recorder writes every 100 ms
/// instead of every second. Not thread-safe.
class LiveRecorder {
 public:
  /// Connects to the socket in a recorder's folder. std::nullopt if no process of this user listens. Does not wait.
  static std::optional<LiveRecorder> connect(const std::string& socket);

  /// Reads the recorder's messages since the last call. False once the recorder is gone. Does not wait.
  bool update();
  /// From the latest message; empty before the first message, and if nothing is recorded.
  [[nodiscard]] const std::vector<LiveRecording>& recordings() const { return recordings_; }
  /// From the latest message.
  [[nodiscard]] const LiveDumps& dumps() const { return dumps_; }
  /// Asks a flight recorder for a dump: the answer comes in dumps(). False if it cannot be asked now.
  bool ask_for_dump(std::string_view id);
  [[nodiscard]] bool heard() const { return heard_; }
  /// Readable when there is something for update().
  [[nodiscard]] int descriptor() const { return connection_.get(); }

 private:
  explicit LiveRecorder(ScopedFd connection) : connection_(std::move(connection)) {}

  ScopedFd connection_;
  std::vector<LiveRecording> recordings_;
  LiveDumps dumps_;
  bool heard_ = false;
};

/// All recorders that answer within `patience`, except those of programs started with another TMPDIR.
[[nodiscard]] std::vector<LiveRecorder> find_live_recorders(
    std::chrono::milliseconds patience = std::chrono::milliseconds(500));

/// The recordings of all recorders, by pid.
[[nodiscard]] std::vector<LiveRecording> find_live_recordings();

/// Not thread-safe. Never waits or wakes another thread: the recorder calls it whenever it wakes up for its programs.
class LiveClients {
 public:
  static constexpr std::size_t kMaxClients = 16;

  /// `listener`: from SocketFolder::listen(), non-blocking.
  explicit LiveClients(ScopedFd listener) : listener_(std::move(listener)) {}

  /// Accepts readers of the same user, and removes those that have disconnected.
  void welcome();
  [[nodiscard]] std::size_t count() const { return clients_.size(); }
  /// The dumps that readers have asked for since the last call, by their id; at most kMaxClients.
  [[nodiscard]] std::vector<std::string> take_requests() { return std::exchange(requests_, {}); }
  /// Sends the list to the readers that have not received it.
  void send(std::span<const LiveRecording> recordings, const LiveDumps& dumps = {});

 private:
  struct Client {
    ScopedFd connection;
    std::string told;
  };

  /// Reads its requests. False once it has disconnected, or has sent anything else.
  bool listen_to(const Client& client);

  ScopedFd listener_;
  std::vector<Client> clients_;
  std::vector<std::string> requests_;
};

}  // namespace tidemark
