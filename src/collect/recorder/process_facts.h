// Facts about a process that its own memory does not hold.
#pragma once

#include <sys/types.h>

#include <string>

namespace tidemark {

/// Arguments joined by spaces, from /proc; empty when the process is gone.
[[nodiscard]] std::string command_line(pid_t pid);

/// This machine's name.
[[nodiscard]] std::string hostname();

/// Version of the PyTorch that a library belongs to: from torch/version.py beside torch/lib/, else from the digits of
/// the library's own name (Debian's libc10.so.1.13); empty when neither says.
[[nodiscard]] std::string torch_version(const std::string& library);

}  // namespace tidemark
