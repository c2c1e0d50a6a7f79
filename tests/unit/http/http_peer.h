// The other side of HTTP for tests: sockets and nothing of the code under test.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/scoped_fd.h"

namespace tidemark::testing {

/// Sends a request unchanged to a port of 127.0.0.1 (or of ::1), and returns everything until the connection ends.
std::string exchange(std::uint16_t port, const std::string& request, bool six = false);

/// A connection to a port of 127.0.0.1, or of ::1; std::nullopt: it was refused.
[[nodiscard]] ScopedFd connect_to(std::uint16_t port, bool six = false);

/// Receives requests at a free port of 127.0.0.1.
class HttpReceiver {
 public:
  struct Request {
    std::string head;  ///< with its first line
    std::string body;
  };

  /// `answer(n)`: to the n-th request (from 0), a status line and headers without the empty line: "200 OK".
  explicit HttpReceiver(std::function<std::string(std::size_t)> answer);
  ~HttpReceiver();

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// Waits until there are this many.
  std::vector<Request> requests(std::size_t count);

 private:
  void run();

  std::function<std::string(std::size_t)> answer_;
  ScopedFd socket_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace tidemark::testing
