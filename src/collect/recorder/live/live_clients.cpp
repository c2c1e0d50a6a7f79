#include "collect/recorder/live/live_clients.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "collect/recorder/descriptors.h"

namespace tidemark {
namespace {

// Processes that are to be recorded come first.
constexpr unsigned long kDescriptorsToLeave = 32;

bool is_this_user(const ScopedFd& connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

// A reader has nothing to say.
bool has_gone(const ScopedFd& connection) {
  char byte = 0;
  return ::recv(connection.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || (errno != EAGAIN && errno != EINTR);
}

}  // namespace

void LiveClients::welcome() {
  std::erase_if(clients_, [](const Client& client) { return has_gone(client.connection); });
  for (std::size_t accepted = 0; accepted < kMaxClients; ++accepted) {
    ScopedFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    if (clients_.size() >= kMaxClients || !is_this_user(connection)) continue;
    if (descriptors_after(connection.get()) < kDescriptorsToLeave) continue;
    clients_.push_back({std::move(connection), ""});
  }
}

void LiveClients::tell(std::span<const LiveRecording> recordings) {
  const std::string message = live_message(recordings);
  for (Client& client : clients_) {
    if (client.told == message) continue;
    const auto sent = ::send(client.connection.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(message.size())) client.told = message;
  }
}

}  // namespace tidemark
