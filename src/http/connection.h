// An HTTP connection of a client: it sends one request, gets its answer, and closes the connection.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/scoped_fd.h"
#include "http/request.h"

namespace tidemark {

/// For a loop around poll(). Not thread-safe; no call waits.
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  /// Returns the whole answer to a request; for a request that cannot be answered, an error page.
  using Respond = std::function<std::string(const HttpRequest&)>;

  /// Takes over a non-blocking socket. `deadline`: for the request and its answer.
  HttpConnection(ScopedFd socket, Clock::time_point deadline) : socket_(std::move(socket)), deadline_(deadline) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Events to poll for.
  [[nodiscard]] short events() const { return is_sending() ? POLLOUT : POLLIN; }
  /// When to close the connection.
  [[nodiscard]] Clock::time_point deadline() const { return deadline_; }
  /// Reads and writes without waiting. False at the end: close the connection.
  [[nodiscard]] bool proceed(const Respond& respond);

  /// Whether to retry the failed system call later (errno).
  [[nodiscard]] static bool would_wait();

 private:
  [[nodiscard]] bool is_sending() const { return sent_ < answer_.size(); }
  bool send();

  ScopedFd socket_;
  Clock::time_point deadline_;
  std::string received_;
  std::string answer_;
  std::size_t sent_ = 0;
};

}  // namespace tidemark
