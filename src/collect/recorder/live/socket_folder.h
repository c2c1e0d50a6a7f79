// The private folder in which a recorder listens: the programs that it records find it by their environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// Removed when destroyed. One that a killed recorder left is removed by the user's next recorder: its lock is free.
class SocketFolder {
 public:
  /// In TIDEMARK_RUNTIME_DIR; where that is not set, in XDG_RUNTIME_DIR, TMPDIR or /tmp.
  static Result<SocketFolder> create();

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&& other) = delete;
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder();

  /// A socket at socket() to which only this user can connect.
  [[nodiscard]] Result<ScopedFd> listen() const;
  /// Another one at live_socket(), for those who read recordings while they are written.
  [[nodiscard]] Result<ScopedFd> listen_to_readers() const;
  /// Of all recorders of this user in the same places; some may be gone.
  [[nodiscard]] static std::vector<std::string> live_sockets();

  [[nodiscard]] std::string socket() const { return path_ + "/recorder"; }
  [[nodiscard]] std::string live_socket() const { return path_ + "/live"; }
  /// What processes say that have no recording: letters of collect/process/connection.h, report_unrecorded().
  [[nodiscard]] std::string marks() const;
  /// Whether a monitor's question for a process waits (ring/layout.h). A system call.
  [[nodiscard]] bool has_question(pid_t pid) const;

 private:
  SocketFolder(std::string path, ScopedFd lock);

  std::string path_;  ///< empty once moved from
  ScopedFd lock_;
};

}  // namespace tidemark
