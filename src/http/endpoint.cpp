#include "http/endpoint.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "base/thread_without_signals.h"
#include "http/connection.h"
#include "http/request.h"

namespace tidemark {
namespace {

using Clock = HttpConnection::Clock;

constexpr std::chrono::milliseconds kPauseWithoutDescriptors{200};
constexpr std::string_view kText = "text/plain; charset=utf-8";

// Takes equal time for all guesses, so that the length of a matching prefix cannot be measured.
bool is_secret(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char difference = 0;
  for (std::size_t index = 0; index < left.size(); ++index) {
    difference = static_cast<unsigned char>(difference | (left[index] ^ right[index]));
  }
  return difference == 0;
}

bool is_this_host(const std::string& host) {
  return ::strcasecmp(host.c_str(), "localhost") == 0 || host == "[::1]" || is_loopback({host});
}

// Most of the descriptors are for the process's other work.
std::size_t max_connections() {
  constexpr rlim_t kShare = 8;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / kShare, 1, Endpoint::kMaxConnections));
}

struct SocketName {
  sockaddr_storage storage{};
  socklen_t length = 0;

  explicit SocketName(const EndpointOptions& options) {
    auto* const six = reinterpret_cast<sockaddr_in6*>(&storage);
    auto* const four = reinterpret_cast<sockaddr_in*>(&storage);
    if (::inet_pton(AF_INET6, options.address.c_str(), &six->sin6_addr) == 1) {
      storage.ss_family = AF_INET6;
      six->sin6_port = htons(options.port);
      length = sizeof(*six);
    } else if (::inet_pton(AF_INET, options.address.c_str(), &four->sin_addr) == 1) {
      storage.ss_family = AF_INET;
      four->sin_port = htons(options.port);
      length = sizeof(*four);
    }
  }
  [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] std::uint16_t port() const {
    return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                               : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }
};

struct Answer {
  std::string_view status;  ///< "200 OK"
  std::string_view content_type;
  std::string_view headers;  ///< further ones
  std::string content;
};

std::string to_message(const Answer& answer, bool head_only) {
  // One request per connection: for another request, a client connects again and gets new time.
  std::string message = fmt::format(
      "HTTP/1.1 {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      answer.status, fmt::gmtime(std::time(nullptr)), answer.content_type, answer.content.size(), answer.headers);
  return head_only ? message : message + answer.content;
}

}  // namespace

struct Endpoint::Server {
  EndpointOptions options;
  std::string content_type;
  std::function<std::string()> page;
  ScopedFd socket;
  ScopedFd stop{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::size_t most = max_connections();
  std::vector<HttpConnection> connections;  ///< oldest first
  std::optional<Clock::time_point> paused_until;
  std::thread thread;

  ~Server() {
    if (thread.joinable()) {
      static_cast<void>(::eventfd_write(stop.get(), 1));
      thread.join();
    }
  }

  Result<std::uint16_t> listen();
  [[nodiscard]] bool may_read(const HttpRequest& request) const;
  [[nodiscard]] Answer answer(const HttpRequest& request) const;
  void run();
  void proceed(const std::vector<pollfd>& ready);
  void accept_one();
  [[nodiscard]] int poll_timeout_ms() const;
};

Result<std::uint16_t> Endpoint::Server::listen() {
  const auto failed = [this] {
    const std::string where = fmt::format("cannot listen at {} port {}", options.address, options.port);
    if (errno == EADDRINUSE) return Error{where + ": another program does (choose another port)"};
    return Error{fmt::format("{}: {}", where, std::strerror(errno))};
  };
  SocketName name(options);
  socket.reset(::socket(name.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;  // allow a port with recently closed connections
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(socket.get(), name.address(), name.length) != 0 || ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket.get(), name.address(), &name.length) != 0) {
    return failed();
  }
  return name.port();
}

bool Endpoint::Server::may_read(const HttpRequest& request) const {
  if (options.token.empty()) return is_this_host(request.host);
  return request.authorization && is_secret(*request.authorization, "Bearer " + options.token);
}

Answer Endpoint::Server::answer(const HttpRequest& request) const {
  if (request.state == RequestState::too_long) {
    return {"431 Request Header Fields Too Large", kText, "", "the request is too long\n"};
  }
  if (request.state == RequestState::has_content) {
    return {"413 Content Too Large", kText, "", "the request has a body\n"};
  }
  if (request.state != RequestState::complete) return {"400 Bad Request", kText, "", "not understood\n"};
  if (!may_read(request)) {
    if (options.token.empty()) return {"403 Forbidden", kText, "", "this page is for programs of this machine\n"};
    return {"401 Unauthorized", kText, "WWW-Authenticate: Bearer\r\n", "a token is needed\n"};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return {"405 Method Not Allowed", kText, "Allow: GET, HEAD\r\n", "this page is only read\n"};
  }
  if (request.path == "/metrics") return {"200 OK", content_type, "", page()};
  if (request.path == "/") {
    return {"200 OK", "text/html; charset=utf-8", "", "<!doctype html><a href=\"/metrics\">/metrics</a>\n"};
  }
  return {"404 Not Found", kText, "", "try /metrics\n"};
}

void Endpoint::Server::run() {
  std::vector<pollfd> polled;
  while (true) {
    if (paused_until && Clock::now() >= *paused_until) paused_until.reset();
    polled = {{stop.get(), POLLIN, 0}, {paused_until ? -1 : socket.get(), POLLIN, 0}};
    for (const HttpConnection& connection : connections) polled.push_back({connection.fd(), connection.events(), 0});
    if (::poll(polled.data(), polled.size(), poll_timeout_ms()) < 0) continue;  // interrupted, or without memory
    if (polled[0].revents != 0) return;
    proceed({polled.begin() + 2, polled.end()});
    // Accept one at a time: each is read before another connection can replace it.
    if (polled[1].revents != 0) accept_one();
  }
}

// `ready`: the result for each connection, in order.
void Endpoint::Server::proceed(const std::vector<pollfd>& ready) {
  const auto respond = [this](const HttpRequest& request) {
    return to_message(answer(request), request.method == "HEAD");
  };
  const Clock::time_point now = Clock::now();
  std::size_t position = 0;
  std::erase_if(connections, [&](HttpConnection& connection) {
    const bool is_ready = ready[position++].revents != 0;
    return (is_ready && !connection.proceed(respond)) || now >= connection.deadline();
  });
}

// Clients that send a request get the answer within milliseconds: the oldest of many connections is idle.
void Endpoint::Server::accept_one() {
  ScopedFd client(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client) {
    if (connections.size() >= most) connections.erase(connections.begin());
    connections.emplace_back(std::move(client), Clock::now() + options.max_time);
  } else if (!HttpConnection::would_wait() && errno != ECONNABORTED) {
    // Without a free descriptor, poll() would report the connection repeatedly.
    paused_until = Clock::now() + kPauseWithoutDescriptors;
  }
}

int Endpoint::Server::poll_timeout_ms() const {
  std::optional<Clock::time_point> next = paused_until;
  for (const HttpConnection& connection : connections)
    next = std::min(next.value_or(connection.deadline()), connection.deadline());
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

Endpoint::Endpoint(std::unique_ptr<Server> server) : server_(std::move(server)) {}
Endpoint::~Endpoint() = default;

Result<std::unique_ptr<Endpoint>> Endpoint::start(const EndpointOptions& options, std::string content_type,
                                                  std::function<std::string()> page) {
  if (options.token.empty() && !is_loopback(options)) {
    return Error{
        fmt::format("{} can be reached from other machines: add --listen-token-file FILE with a token that "
                    "clients have to show, or listen at 127.0.0.1",
                    options.address)};
  }
  auto server = std::make_unique<Server>();
  server->options = options;
  server->content_type = std::move(content_type);
  server->page = std::move(page);
  if (!server->stop) return Error{fmt::format("cannot listen: {}", std::strerror(errno))};
  const auto port = server->listen();
  if (!port) return port.error();
  const bool six = options.address.find(':') != std::string::npos;
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(server)));
  endpoint->url_ = fmt::format("http://{}{}{}:{}/metrics", six ? "[" : "", options.address, six ? "]" : "", *port);
  try {
    endpoint->server_->thread = thread_without_signals([server = endpoint->server_.get()] { server->run(); });
  } catch (const std::system_error& error) {
    return Error{fmt::format("cannot listen: no thread can be started ({})", error.code().message())};
  }
  return endpoint;
}

}  // namespace tidemark
