// The modules of torch.nn that are in stacks of this process: which were met, and which have died since.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::process {

inline constinit std::atomic<std::uint64_t> module_deaths{0};

/// Changes when a module that has a name dies: its address may then come to mean another one. See python_generation().
inline std::uint64_t module_generation() noexcept {
  return module_deaths.load(std::memory_order_acquire);
}

/// A stack with this module was defined: asks for names if it was not met before. Any thread; may change errno.
void meet_module(std::uintptr_t module) noexcept;

/// These have names: nobody needs to ask when they are met.
void modules_named(const std::uint64_t* modules, std::size_t count) noexcept;

/// Tells the recorder, and counts. With the GIL.
void module_died(std::uintptr_t module) noexcept;

/// Whether names are to be asked for, and may be by now: asking takes a hundredth of the time at most, from some
/// milliseconds on.
bool names_are_due() noexcept;

/// Around asking. `again`: it could not be done now.
void asking_began() noexcept;
void asking_ended(bool again) noexcept;

/// For a new connection: the recorder knows of none.
void forget_modules() noexcept;

}  // namespace tidemark::process
