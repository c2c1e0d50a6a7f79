#include "http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tidemark {
namespace {

constexpr std::chrono::seconds kMaxLinger{1};  // until a client that has its answer closes the connection

}  // namespace

bool HttpConnection::would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

bool HttpConnection::proceed(const Respond& respond) {
  if (is_sending()) return send();
  std::array<char, kMaxRequestBytes> bytes{};
  const ssize_t got = ::recv(fd(), bytes.data(), bytes.size(), 0);
  if (got <= 0) return got < 0 && would_wait();
  if (!answer_.empty()) return true;  // data after the request
  received_.append(bytes.data(), static_cast<std::size_t>(got));
  const HttpRequest request = parse_request(received_);
  if (request.state == RequestState::incomplete) return true;
  answer_ = respond(request);
  return send();
}

bool HttpConnection::send() {
  const ssize_t sent = ::send(fd(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
  if (sent < 0) return would_wait();
  sent_ += static_cast<std::size_t>(sent);
  if (is_sending()) return true;
  // The client closes it: closing this side with unread data could lose the answer.
  deadline_ = std::min(deadline_, Clock::now() + kMaxLinger);
  return ::shutdown(fd(), SHUT_WR) == 0;
}

}  // namespace tidemark
