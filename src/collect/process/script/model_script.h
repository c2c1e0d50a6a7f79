// Names of the modules of torch.nn that are in stacks of this process, and the tensors of its model and optimizers:
// model_script.py sends them to the recorder when a module was seen that has no name yet.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark::process {

inline constinit std::atomic<std::uint64_t> freed_modules{0};

/// Changes when a module that has a name is freed: its address may then come to mean another one. See
/// python_generation().
inline std::uint64_t module_generation() noexcept {
  return freed_modules.load(std::memory_order_acquire);
}

/// A stack with this module was defined: schedules the script if the module has no name. Any thread; may change errno.
void module_seen(std::uintptr_t module) noexcept;

/// For a new connection: its recorder has no names.
void forget_modules() noexcept;

}  // namespace tidemark::process
