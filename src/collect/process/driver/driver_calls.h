// What each call of the CUDA driver means for its memory, and what it took or gave back once it succeeded.
#pragma once

#include <cstdint>
#include <span>

#include "collect/process/driver/cupti_api.h"
#include "collect/process/native/unwinder.h"

namespace tidemark::process::cuda {

/// Ids of the driver's functions that on_driver_call() wants to hear of.
[[nodiscard]] std::span<const std::uint32_t> watched_calls() noexcept;

/// The subscriber's callback: records what the call did. On the calling thread, without locks.
void on_driver_call(void* user_data, std::uint32_t domain, std::uint32_t id, const CallbackData* data);

template <typename Parameters>
const Parameters& parameters(const CallbackData& data) noexcept {
  return *static_cast<const Parameters*>(data.parameters);
}

/// The ticks at which the call was made, where they are wanted; 0 where its entry was not seen.
inline std::uint64_t& call_ticks(const CallbackData& data) noexcept {
  return *data.correlation_data;
}

/// The device of the context that is current.
[[nodiscard]] Device device_of(const CallbackData& data) noexcept;

/// The device of a place, -1 where it is the host.
[[nodiscard]] Device device_at(const Location& location) noexcept;

// Each records what calls of its kind did, and does nothing for other ids.

/// Memory that was taken. Gives the ticks of the record, 0 where nothing was recorded.
std::uint64_t on_taken(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept;

/// Memory that was given back, at the ticks call_ticks(data).
void on_given_back(std::uint32_t id, const CallbackData& data) noexcept;

/// References to physical memory and its mappings.
void on_physical(std::uint32_t id, const CallbackData& data) noexcept;

}  // namespace tidemark::process::cuda
