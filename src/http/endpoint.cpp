#include "http/endpoint.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"
#include "base/thread_without_signals.h"

namespace tidemark {
namespace {

constexpr int kPatienceSeconds = 10;  // with a client
constexpr ev_ssize_t kMaxHeaderBytes = 8192;
constexpr timeval kPauseWithoutDescriptors{0, 200'000};
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;

// As long for all guesses: how much of it was right cannot be measured.
bool same(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char difference = 0;
  for (std::size_t index = 0; index < left.size(); ++index) {
    difference = static_cast<unsigned char>(difference | (left[index] ^ right[index]));
  }
  return difference == 0;
}

bool is_this_host(const char* host) {
  if (host == nullptr) return false;
  const std::string_view name = host;
  return name == "localhost" || name == "[::1]" || is_loopback({std::string(name)});
}

// Without a descriptor for it, a connection would be reported again and again.
void pause_listening(evconnlistener* listener, void* /*server*/) {
  evconnlistener_disable(listener);
  const auto resume = [](evutil_socket_t, short, void* paused) {
    evconnlistener_enable(static_cast<evconnlistener*>(paused));
  };
  event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, resume, listener, &kPauseWithoutDescriptors);
}

void reply(evhttp_request* request, int code, const char* reason, std::string_view content_type,
           std::string_view body) {
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", std::string(content_type).c_str());
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  if (code == kUnauthorized) evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
  evbuffer_add(evhttp_request_get_output_buffer(request), body.data(), body.size());
  evhttp_send_reply(request, code, reason, nullptr);
}

}  // namespace

struct Endpoint::Server {
  template <auto Free>
  struct CDeleter {
    template <typename T>
    void operator()(T* object) const {
      Free(object);
    }
  };

  EndpointOptions options;
  std::string content_type;
  std::function<std::string()> page;
  std::unique_ptr<event_base, CDeleter<event_base_free>> base;
  std::unique_ptr<evhttp, CDeleter<evhttp_free>> http;
  ScopedFd stop{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::unique_ptr<event, CDeleter<event_free>> stopping;
  std::thread thread;

  ~Server() {
    if (thread.joinable()) {
      static_cast<void>(::eventfd_write(stop.get(), 1));
      thread.join();
    }
  }

  Result<std::uint16_t> listen();
  [[nodiscard]] bool may_read(evhttp_request* request) const;
  void answer(evhttp_request* request);
};

Result<std::uint16_t> Endpoint::Server::listen() {
  const auto failed = [this](int error) {
    const std::string where = fmt::format("cannot listen at {} port {}", options.address, options.port);
    if (error == EADDRINUSE) return Error{where + ": another program does (choose another port)"};
    return Error{fmt::format("{}: {}", where, std::strerror(error))};
  };
  evhttp_bound_socket* const bound = evhttp_bind_socket_with_handle(http.get(), options.address.c_str(), options.port);
  if (bound == nullptr) return failed(errno);
  evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), pause_listening);
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (::getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return failed(errno);
  }
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

bool Endpoint::Server::may_read(evhttp_request* request) const {
  if (options.token.empty()) return is_this_host(evhttp_request_get_host(request));
  const char* const shown = evhttp_find_header(evhttp_request_get_input_headers(request), "Authorization");
  return shown != nullptr && same(shown, "Bearer " + options.token);
}

void Endpoint::Server::answer(evhttp_request* request) {
  const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
  const char* const given = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
  const std::string_view path = given == nullptr ? "" : given;
  constexpr std::string_view kText = "text/plain; charset=utf-8";
  if (!may_read(request)) {
    if (!options.token.empty()) return reply(request, kUnauthorized, "Unauthorized", kText, "a token is needed\n");
    return reply(request, kForbidden, "Forbidden", kText, "this page is for programs of this machine\n");
  }
  if (path == "/metrics") return reply(request, HTTP_OK, "OK", content_type, page());
  if (path == "/" || path.empty()) {
    return reply(request, HTTP_OK, "OK", "text/html; charset=utf-8",
                 "<!doctype html><a href=\"/metrics\">/metrics</a>\n");
  }
  reply(request, HTTP_NOTFOUND, "Not Found", kText, "try /metrics\n");
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
  event_set_log_callback([](int, const char*) {});  // it would write to stderr
  auto server = std::make_unique<Server>();
  server->options = options;
  server->content_type = std::move(content_type);
  server->page = std::move(page);
  server->base.reset(event_base_new());
  if (server->base) server->http.reset(evhttp_new(server->base.get()));
  if (!server->http || !server->stop) return Error{"cannot listen: out of memory or descriptors"};

  evhttp* const http = server->http.get();
  evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_max_headers_size(http, kMaxHeaderBytes);
  evhttp_set_max_body_size(http, 0);
  evhttp_set_timeout(http, kPatienceSeconds);
  evhttp_set_gencb(
      http, [](evhttp_request* request, void* self) { static_cast<Server*>(self)->answer(request); }, server.get());
  const auto stop = [](evutil_socket_t, short, void* base) { event_base_loopbreak(static_cast<event_base*>(base)); };
  server->stopping.reset(event_new(server->base.get(), server->stop.get(), EV_READ, stop, server->base.get()));
  if (!server->stopping || event_add(server->stopping.get(), nullptr) != 0)
    return Error{"cannot listen: out of memory"};

  const auto port = server->listen();
  if (!port) return port.error();
  const bool six = options.address.find(':') != std::string::npos;
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(server)));
  endpoint->url_ = fmt::format("http://{}{}{}:{}/metrics", six ? "[" : "", options.address, six ? "]" : "", *port);
  // SIGPIPE of clients that are gone, too.
  try {
    endpoint->server_->thread =
        thread_without_signals([base = endpoint->server_->base.get()] { event_base_dispatch(base); });
  } catch (const std::system_error& error) {
    return Error{fmt::format("cannot listen: no thread can be started ({})", error.code().message())};
  }
  return endpoint;
}

}  // namespace tidemark
