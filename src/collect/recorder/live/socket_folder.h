// The private folder in which a recorder listens: recorded programs find it through their environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// Removed when destroyed. The user's next recorder removes a folder that a killed recorder left: its lock is free.
class SocketFolder {
 public:
  /// In TIDEMARK_RUNTIME_DIR, else XDG_RUNTIME_DIR, TMPDIR or /tmp.
  static Result<SocketFolder> create();

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&& other) = delete;
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder();

  /// A socket at socket() to which only this user can connect.
  [[nodiscard]] Result<ScopedFd> listen() const;
  /// Another one at live_socket(), for readers of recordings in progress.
  [[nodiscard]] Result<ScopedFd> listen_to_readers() const;
  /// The sockets of all recorders of this user in the same places; some may be gone.
  [[nodiscard]] static std::vector<std::string> live_sockets();

  [[nodiscard]] std::string socket() const { return path_ + "/recorder"; }
  [[nodiscard]] std::string live_socket() const { return path_ + "/live"; }
  /// Reports of processes without a recording: letters of collect/process/connection.h, report_unrecorded().
  [[nodiscard]] std::string marks() const;
  /// Whether a monitor's request for a process is waiting (ring/layout.h). A system call.
  [[nodiscard]] bool has_question(pid_t pid) const;

 private:
  SocketFolder(std::string path, ScopedFd lock);

  std::string path_;  ///< empty once moved from
  ScopedFd lock_;
};

}  // namespace tidemark
