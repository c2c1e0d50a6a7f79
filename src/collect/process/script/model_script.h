// Names of the torch.nn modules in stacks of this process, and the tensors of its models and optimizers:
// model_script.py sends them to the recorder when a module without a name was seen.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark::process {

inline constinit std::atomic<std::uint64_t> freed_modules{0};

/// Changes when a named module is freed: its address may then mean another one. See python_generation().
inline std::uint64_t module_generation() noexcept {
  return freed_modules.load(std::memory_order_acquire);
}

/// A stack with this module was defined: schedules the script if the module has no name. Any thread; may change errno.
void module_seen(std::uintptr_t module) noexcept;

/// For a new connection: its recorder has no names.
void forget_modules() noexcept;

}  // namespace tidemark::process
