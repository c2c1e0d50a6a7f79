#include "collect/recorder/reception.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "collect/recorder/process_facts.h"
#include "collect/ring/layout.h"

namespace tidemark {
namespace {

// How long processes wait for acceptance if the whole system is out of descriptors.
constexpr std::chrono::milliseconds kAcceptAgain{100};

// There may be more descriptors than this protocol sends: as many as fit into the padding of the control buffer.
std::vector<ScopedFd> received_descriptors(const msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return {};
  std::vector<int> numbers((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(numbers.data(), CMSG_DATA(header), numbers.size() * sizeof(int));
  return {numbers.begin(), numbers.end()};
}

}  // namespace

void Reception::add_to(std::vector<pollfd>& polled) {
  const bool listening = std::chrono::steady_clock::now() >= listen_again_;
  polled.push_back({listening ? listener_.get() : -1, POLLIN, 0});
  for (const ScopedFd& connection : greeting_) polled.push_back({connection.get(), POLLIN, 0});
}

void Reception::take(const std::function<void(Arrival)>& admit) {
  std::vector<ScopedFd> waiting = std::exchange(greeting_, {});
  for (ScopedFd& connection : waiting) read_arrival(std::move(connection), admit);
  while (std::chrono::steady_clock::now() >= listen_again_) {
    ScopedFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      if (errno == EMFILE || errno == ENFILE) listen_again_ = std::chrono::steady_clock::now() + kAcceptAgain;
      return;
    }
    read_arrival(std::move(connection), admit);
  }
}

// Reads the first message, if it has arrived; the connection has no further use.
void Reception::read_arrival(ScopedFd connection, const std::function<void(Arrival)>& admit) {
  ring::Hello hello{};
  iovec data{&hello, sizeof(hello)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    greeting_.push_back(std::move(connection));
    return;
  }
  std::vector<ScopedFd> descriptors = received_descriptors(message);
  ucred peer{};
  socklen_t size = sizeof(peer);
  const bool known = ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (got != static_cast<ssize_t>(sizeof(hello)) || hello.magic != ring::kMagic || !known) return;
  if (descriptors.empty() && (message.msg_flags & MSG_CTRUNC) != 0) return admit({peer.pid, {}, few_descriptors()});
  if (descriptors.size() != 1) return;
  if (peer.uid != ::geteuid()) return admit({peer.pid, {}, "it runs as another user"});
  admit({peer.pid, std::move(descriptors.front()), ""});
}

}  // namespace tidemark
