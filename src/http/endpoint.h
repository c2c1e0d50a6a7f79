// An HTTP endpoint that serves the metrics page for Prometheus.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace tidemark {

struct EndpointOptions {
  std::string address;     ///< "127.0.0.1", "::1", "0.0.0.0": no names
  std::uint16_t port = 0;  ///< 0: any free port
  std::string token = {};  ///< token required from clients (Authorization: Bearer TOKEN); empty: none
  std::chrono::milliseconds max_time{10'000};  ///< for a request and its answer, regardless of progress
};

/// "127.0.0.1:9400", "[::1]:9400", "localhost:9400", ":9400" (this machine only) or "9400". The error describes the
/// expected form.
[[nodiscard]] Result<EndpointOptions> parse_endpoint(const std::string& text);

/// Whether only programs on this machine can reach it.
[[nodiscard]] bool is_loopback(const EndpointOptions& options);

/// The first line of a file that only its owner can read.
[[nodiscard]] Result<std::string> read_token_file(const std::string& path);

/// Answers GET and HEAD of /metrics, and of / with a link, on a thread of its own. It rejects requests without the
/// token, if there is one, and else requests with another host than this machine (from a web page that uses a browser's
/// access to this machine).
///
/// Clients cannot exhaust the descriptors or the memory of this process: each sends one request, of at most 8 KiB, and
/// has EndpointOptions::max_time for it and its answer. If all connections are taken, the oldest is closed for the next
/// one: a client that sends its request at once gets its answer long before.
class Endpoint {
 public:
  static constexpr std::size_t kMaxConnections = 64;  ///< and at most an eighth of the descriptors (RLIMIT_NOFILE)

  /// `page` makes the page, on the endpoint's thread. Refuses addresses other than loopback without a token. The error
  /// names the address and the remedy.
  static Result<std::unique_ptr<Endpoint>> start(const EndpointOptions& options, std::string content_type,
                                                 std::function<std::string()> page);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// "http://127.0.0.1:9400/metrics".
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  struct Server;
  explicit Endpoint(std::unique_ptr<Server> server);

  std::unique_ptr<Server> server_;
  std::string url_;
};

}  // namespace tidemark
