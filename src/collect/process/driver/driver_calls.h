// What each call of the CUDA driver means for its memory.
#pragma once

#include <cstdint>
#include <span>

#include "collect/process/driver/cupti_api.h"

namespace tidemark::process::cuda {

/// Ids of the driver's functions that on_driver_call() wants to hear of.
[[nodiscard]] std::span<const std::uint32_t> watched_calls() noexcept;

/// The subscriber's callback: records what the call did. On the calling thread, without locks.
void on_driver_call(void* user_data, std::uint32_t domain, std::uint32_t id, const CallbackData* data);

}  // namespace tidemark::process::cuda
