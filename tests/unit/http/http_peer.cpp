#include "unit/http/http_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace tidemark::testing {
namespace {

// Reads more data; false at the end.
bool receive(int fd, std::string& text) {
  std::array<char, 4096> bytes{};
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  text.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

}  // namespace

ScopedFd connect_to(std::uint16_t port, bool six) {
  ScopedFd fd(::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in four{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
  sockaddr_in6 other{AF_INET6, htons(port), 0, IN6ADDR_LOOPBACK_INIT, 0};
  const int failed = six ? ::connect(fd.get(), reinterpret_cast<sockaddr*>(&other), sizeof(other))
                         : ::connect(fd.get(), reinterpret_cast<sockaddr*>(&four), sizeof(four));
  return failed == 0 ? std::move(fd) : ScopedFd();
}

std::string exchange(std::uint16_t port, const std::string& request, bool six) {
  const ScopedFd fd = connect_to(port, six);
  if (!fd) return "no connection";
  (void)!::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  while (receive(fd.get(), answer)) {
  }
  return answer;
}

HttpReceiver::HttpReceiver(std::function<std::string(std::size_t)> answer)
    : answer_(std::move(answer)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in name{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  socklen_t length = sizeof(name);
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  if (::bind(socket_.get(), address, length) != 0 || ::listen(socket_.get(), 8) != 0) std::abort();
  if (::getsockname(socket_.get(), address, &length) != 0) std::abort();
  port_ = ntohs(name.sin_port);
  thread_ = std::thread([this] { run(); });
}

HttpReceiver::~HttpReceiver() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  thread_.join();
}

std::vector<HttpReceiver::Request> HttpReceiver::requests(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return requests_.size() >= count; });
  return requests_;
}

void HttpReceiver::run() {
  for (std::size_t number = 0;; ++number) {
    const ScopedFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) return;
    std::string text;
    std::size_t end = std::string::npos;
    while ((end = text.find("\r\n\r\n")) == std::string::npos && receive(client.get(), text)) {
    }
    const std::size_t begin = end == std::string::npos ? text.size() : end + 4;
    const std::size_t length = text.find("Content-Length: ");
    const std::size_t size = length == std::string::npos ? 0 : std::strtoul(text.c_str() + length + 16, nullptr, 10);
    while (text.size() < begin + size && receive(client.get(), text)) {
    }
    const std::string answer = "HTTP/1.1 " + answer_(number) + "\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    (void)!::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    const std::lock_guard lock(mutex_);
    requests_.push_back({text.substr(0, begin), text.substr(begin)});
    changed_.notify_all();
  }
}

}  // namespace tidemark::testing
