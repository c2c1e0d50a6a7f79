// The names of the processes that a driver lists.
#pragma once

#include <cstdint>
#include <string>

#include "trace/sample.h"

namespace tidemark {

/// Sets kind and name of a process that a driver lists: `other`, `ended` or `other_namespace`. A driver numbers
/// processes as the host does. In a container such a number may belong to some other process here, so there it counts
/// as `other` only when that process has the GPU open. `root` comes before "/proc".
void name_process(SampledProcess& process, const std::string& root = "");

/// "python train.py", "python -m torch.distributed.run", "Xorg": the program, and for an interpreter what it runs; no
/// other arguments, which may hold secrets. Empty when there is no such process.
[[nodiscard]] std::string short_command(std::int64_t pid, const std::string& root = "");

/// Whether PIDs here are the host's.
[[nodiscard]] bool in_first_pid_namespace(const std::string& root = "");

}  // namespace tidemark
