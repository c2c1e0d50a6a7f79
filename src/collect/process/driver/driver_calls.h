// Derives from each successful call of the CUDA driver the memory that it took or released.
#pragma once

#include <cstdint>
#include <span>

#include "collect/process/driver/cupti_api.h"
#include "collect/process/native/unwinder.h"

namespace tidemark::process::cuda {

/// Ids of the driver's functions that on_driver_call() handles.
[[nodiscard]] std::span<const std::uint32_t> watched_calls() noexcept;

/// The subscriber's callback: records the effect of the call. Runs on the calling thread, without locks.
void on_driver_call(void* user_data, std::uint32_t domain, std::uint32_t id, const CallbackData* data);

template <typename Parameters>
const Parameters& parameters(const CallbackData& data) noexcept {
  return *static_cast<const Parameters*>(data.parameters);
}

/// The ticks at which the call was made, if needed; 0 if its entry was not seen.
inline std::uint64_t& call_ticks(const CallbackData& data) noexcept {
  return *data.correlation_data;
}

/// The device of the current context.
[[nodiscard]] Device device_of(const CallbackData& data) noexcept;

/// The device of a location, -1 for the host.
[[nodiscard]] Device device_at(const Location& location) noexcept;

// Each records the effect of its kind of calls, and does nothing for other ids.

/// Calls that took memory. Returns the ticks of the record, 0 if nothing was recorded.
std::uint64_t on_taken(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept;

/// Calls that released memory, at the ticks call_ticks(data).
void on_given_back(std::uint32_t id, const CallbackData& data) noexcept;

/// References to physical memory and its mappings.
void on_physical(std::uint32_t id, const CallbackData& data) noexcept;

}  // namespace tidemark::process::cuda
