// The only CUPTI subscription of this process: taken when the CUDA driver starts, released when another tool needs it.
//
// `tidemark run --driver on` sets CUDA_INJECTION64_PATH to this library; the driver loads that library when it is
// initialized, and calls InitializeInjection().
#pragma once

namespace tidemark::process::cuda {

/// Subscribes to the driver's memory calls. If that fails, prints the reason in one line and adds it to the recording.
/// Called by the driver, once.
void subscribe() noexcept;

/// Whether the driver's calls are recorded, or would be without a pause. Thread-safe.
[[nodiscard]] bool is_subscribed() noexcept;

/// Disables the calls while recording is paused, and enables them again; does nothing without a subscription. Some
/// microseconds. Thread-safe.
void enable_calls(bool on) noexcept;

/// Ends the subscription so that another tool can subscribe; prints one line and adds it to the recording. Thread-safe;
/// does nothing without a subscription.
void unsubscribe_for_tool() noexcept;

/// From here on, a lookup of a subscribing function in the CUPTI that contains `function` returns a function of this
/// library, which ends this subscription when it is called. Call it once, after subscribing.
void watch_lookups(const void* function) noexcept;

}  // namespace tidemark::process::cuda
