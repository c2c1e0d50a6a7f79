// Keeping a planned program from GPUs that are really there, whatever it does with its environment.
#pragma once

namespace tidemark {

/// Whether NVIDIA's driver is loaded on this machine.
[[nodiscard]] bool has_nvidia_driver();

/// Has the kernel refuse NVIDIA's driver to this thread and to whatever it starts, for good: requests to it fail with
/// ENODEV. Set-user-ID programs gain no rights any more. Does nothing where the kernel has no seccomp filters. Makes
/// system calls only, so it may be called between fork and exec.
void refuse_nvidia_driver();

}  // namespace tidemark
