#include "collect/recorder/live/live_recordings.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "collect/recorder/live/socket_folder.h"
#include "collect/recorder/process_facts.h"

namespace tidemark {

std::optional<LiveRecorder> LiveRecorder::connect(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) return std::nullopt;
  socket.copy(address.sun_path, socket.size());
  ScopedFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return std::nullopt;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid()) {
    return std::nullopt;
  }
  return LiveRecorder(std::move(fd));
}

bool LiveRecorder::update() {
  std::string message(kMaxLiveBytes, '\0');
  while (connection_) {
    const ssize_t got = ::recv(connection_.get(), message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    const auto text = std::string_view(message).substr(0, got > 0 ? static_cast<std::size_t>(got) : 0);
    auto said = parse_live_message(text);
    if (!said) {  // gone, or not a Tidemark recorder
      connection_.reset();
      recordings_.clear();
      return false;
    }
    recordings_ = std::move(*said);
    dumps_ = parse_live_dumps(text);
    heard_ = true;
  }
  return false;
}

bool LiveRecorder::ask_for_dump(std::string_view id) {
  const std::string message = dump_request(id);
  return connection_ && ::send(connection_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                            static_cast<ssize_t>(message.size());
}

std::vector<LiveRecorder> find_live_recorders(std::chrono::milliseconds patience) {
  std::vector<LiveRecorder> found;
  for (const std::string& socket : SocketFolder::live_sockets()) {
    if (auto recorder = LiveRecorder::connect(socket)) found.push_back(std::move(*recorder));
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (LiveRecorder& recorder : found) {
    while (recorder.update() && !recorder.heard()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd entry{recorder.descriptor(), POLLIN, 0};
      if (left.count() <= 0 || (::poll(&entry, 1, static_cast<int>(left.count())) < 0 && errno != EINTR)) break;
    }
  }
  std::erase_if(found, [](const LiveRecorder& recorder) { return !recorder.heard(); });
  return found;
}

std::vector<LiveRecording> find_live_recordings() {
  std::vector<LiveRecording> all;
  for (const LiveRecorder& recorder : find_live_recorders()) {
    all.insert(all.end(), recorder.recordings().begin(), recorder.recordings().end());
  }
  std::sort(all.begin(), all.end(), [](const auto& left, const auto& right) { return left.pid < right.pid; });
  return all;
}

namespace {

// Processes to be recorded come first.
constexpr unsigned long kDescriptorsToLeave = 32;

bool is_this_user(const ScopedFd& connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

bool LiveClients::listen_to(const Client& client) {
  for (std::size_t n = 0; n < kMaxClients; ++n) {
    std::array<char, kMaxDumpRequestBytes> message{};
    const ssize_t got = ::recv(client.connection.get(), message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    auto id = parse_dump_request({message.data(), static_cast<std::size_t>(got)});
    if (!id) return false;
    if (requests_.size() < kMaxClients) requests_.push_back(std::move(*id));
  }
  return true;
}

void LiveClients::welcome() {
  std::erase_if(clients_, [this](const Client& client) { return !listen_to(client); });
  for (std::size_t accepted = 0; accepted < kMaxClients; ++accepted) {
    ScopedFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    if (clients_.size() >= kMaxClients || !is_this_user(connection)) continue;
    if (descriptors_after(connection.get()) < kDescriptorsToLeave) continue;
    clients_.push_back({std::move(connection), ""});
  }
}

void LiveClients::send(std::span<const LiveRecording> recordings, const LiveDumps& dumps) {
  const std::string message = live_message(recordings, dumps);
  for (Client& client : clients_) {
    if (client.told == message) continue;
    const auto sent = ::send(client.connection.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(message.size())) client.told = message;
  }
}

}  // namespace tidemark
