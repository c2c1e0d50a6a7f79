#include "collect/recorder/live/socket_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/locked_file.h"
#include "collect/ring/layout.h"

namespace tidemark {
namespace {

constexpr std::string_view kName = "tidemark-XXXXXX";
constexpr char kLock[] = "recorder.lock";  // created first, removed last: a folder without it is not a recorder's
constexpr int kMaxAttempts = 10;
constexpr const char* kFiles[] = {"recorder", "recorder.seen", "live", kLock};

constexpr char kOnlyParent[] = "TIDEMARK_RUNTIME_DIR";
constexpr std::size_t kMaxParentBytes = 80;  // a socket's path has at most 107

bool is_set(const char* value) {
  return value != nullptr && *value != '\0';
}

std::vector<std::string> parents() {
  if (const char* only = std::getenv(kOnlyParent); is_set(only)) {
    if (std::strlen(only) > kMaxParentBytes) return {};
    return {only};
  }
  std::vector<std::string> found;
  for (const char* parent : {std::getenv("XDG_RUNTIME_DIR"), std::getenv("TMPDIR"), const_cast<char*>("/tmp")}) {
    if (is_set(parent) && std::strlen(parent) <= kMaxParentBytes) found.emplace_back(parent);
  }
  return found;
}

// Removes requests of monitors and answers of programs that were not collected, then the other files.
void remove_files(const ScopedFd& folder) {
  DIR* entries = ::fdopendir(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (const dirent* entry = entries != nullptr ? ::readdir(entries) : nullptr) {
    if (std::string_view(entry->d_name).starts_with(ring::kQuestionStem)) ::unlinkat(folder.get(), entry->d_name, 0);
  }
  if (entries != nullptr) ::closedir(entries);
  for (const char* name : kFiles) ::unlinkat(folder.get(), name, 0);
}

void remove_if_abandoned(const std::string& path) {
  const ScopedFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const ScopedFd lock(folder ? ::openat(folder.get(), kLock, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
  struct stat facts {};
  if (!lock || ::fstat(lock.get(), &facts) != 0 || facts.st_uid != ::geteuid()) return;
  if (try_lock(lock) != LockState::held) return;
  remove_files(folder);
  ::rmdir(path.c_str());
}

// Folders with the name pattern of a recorder's folder.
std::vector<std::string> folders_in(const std::string& parent) {
  constexpr std::string_view kStart = kName.substr(0, kName.find('X'));
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() == kName.size() && name.compare(0, kStart.size(), kStart) == 0) found.push_back(entry->path());
  }
  return found;
}

Result<ScopedFd> listen_at(const std::string& path, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ScopedFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd.get(), backlog) != 0) {
    return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  }
  return fd;
}

}  // namespace

SocketFolder::SocketFolder(std::string path, ScopedFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;
  const ScopedFd folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // memory may have run out
  remove_files(folder);
  ::rmdir(path_.c_str());
}

Result<SocketFolder> SocketFolder::create() {
  const std::vector<std::string> places = parents();
  for (const std::string& parent : places) {
    for (const std::string& folder : folders_in(parent)) remove_if_abandoned(folder);
  }
  for (const std::string& parent : places) {
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      std::string name = fmt::format("{}/{}", parent, kName);
      if (::mkdtemp(name.data()) == nullptr) break;
      auto lock = create_locked_file(fmt::format("{}/{}", name, kLock), false);
      if (lock && *lock) return SocketFolder(std::move(name), std::move(*lock));
      // Another recorder came between and treated the folder as abandoned.
      ::rmdir(name.c_str());
    }
  }
  if (places.empty()) errno = ENAMETOOLONG;
  return Error{fmt::format("no directory for the recorder's socket in {}: {}",
                           is_set(std::getenv(kOnlyParent)) ? kOnlyParent : "XDG_RUNTIME_DIR, TMPDIR or /tmp",
                           std::strerror(errno))};
}

Result<ScopedFd> SocketFolder::listen() const {
  auto fd = listen_at(socket(), 4096);
  if (fd) std::ofstream created(socket() + ".seen");
  return fd;
}

Result<ScopedFd> SocketFolder::listen_to_readers() const {
  return listen_at(live_socket(), 16);
}

std::vector<std::string> SocketFolder::live_sockets() {
  std::set<std::string> folders;  // two of the places may be the same
  for (const std::string& parent : parents()) {
    std::error_code error;
    for (const std::string& folder : folders_in(parent)) {
      struct stat facts {};
      if (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) continue;
      folders.insert(std::filesystem::canonical(folder, error).string());
    }
  }
  std::vector<std::string> sockets;
  sockets.reserve(folders.size());
  for (const std::string& folder : folders) sockets.push_back(folder + "/live");
  return sockets;
}

bool SocketFolder::has_question(pid_t pid) const {
  return ::access(fmt::format("{}/{}{}{}", path_, ring::kQuestionStem, pid, ring::kQuestionEnd).c_str(), F_OK) == 0;
}

std::string SocketFolder::marks() const {
  std::ifstream file(socket() + ".seen");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tidemark
