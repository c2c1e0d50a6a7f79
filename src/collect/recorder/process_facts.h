// Facts about a process that its own memory does not hold, and how many descriptors the recorder can still have: it
// needs one or two for each process.
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

/// Allows this process as many descriptors as it may have at all. For a recorder whose program has been started
/// already: that keeps its own limit, which it may know nothing beyond (select(2)).
void raise_descriptor_limit();

/// How many descriptors can still be had. A new descriptor has the lowest number that is free, so `newest` tells.
[[nodiscard]] unsigned long descriptors_after(int newest);

/// Why a process is not recorded for want of them: "too few file descriptors (ulimit -n 1024)".
[[nodiscard]] std::string few_descriptors();

}  // namespace tidemark
