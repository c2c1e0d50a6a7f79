// Who the PIDs are that a driver names.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

struct ProcessName {
  enum class Kind : std::uint8_t {
    known,      ///< a process that /proc shows here
    ended,      ///< was one; gone since the driver listed it
    elsewhere,  ///< a PID of another PID namespace: another container, or this one's own process numbered by the host
  };
  Kind kind = Kind::elsewhere;
  std::string name;  ///< "python train.py"; empty unless known
};

/// A driver numbers processes as the host does. In a container such a number may belong to some other process here, so
/// there it counts as known only when that process has the GPU open. `root` comes before "/proc".
[[nodiscard]] ProcessName name_process(std::int64_t pid, const std::string& root = "");

/// "python train.py", "python -m torch.distributed.run", "Xorg": the program, and for an interpreter what it runs; no
/// other arguments, which may hold secrets. Empty when there is no such process.
[[nodiscard]] std::string short_command(std::int64_t pid, const std::string& root = "");

/// Whether PIDs here are the host's.
[[nodiscard]] bool in_first_pid_namespace(const std::string& root = "");

}  // namespace tidemark
