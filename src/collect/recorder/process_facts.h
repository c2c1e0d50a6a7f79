// Facts about a process that its shared memory does not contain, and the number of free file descriptors: the recorder
// needs one or two for each process.
#pragma once

#include <sys/types.h>

#include <string>

namespace tidemark {

/// Arguments joined by spaces, from /proc; empty if the process is gone.
[[nodiscard]] std::string command_line(pid_t pid);

/// This machine's name.
[[nodiscard]] std::string hostname();

/// Version of the PyTorch that a library belongs to: from torch/version.py beside torch/lib/, else from the digits in
/// the library's name (Debian's libc10.so.1.13); empty if neither is present.
[[nodiscard]] std::string torch_version(const std::string& library);

/// Raises this process's limit of descriptors to the maximum. For a recorder that has already started its program: the
/// program keeps its own limit, because it may not support more (select(2)).
void raise_descriptor_limit();

/// The number of descriptors still available. A new descriptor has the lowest free number, so `newest` determines it.
[[nodiscard]] unsigned long descriptors_after(int newest);

/// Why a process is not recorded if they run out: "too few file descriptors (ulimit -n 1024)".
[[nodiscard]] std::string few_descriptors();

}  // namespace tidemark
