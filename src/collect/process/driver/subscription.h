// The one CUPTI subscription of this process: taken when the CUDA driver starts, left to whoever wants it later.
//
// `tidemark run --driver on` names this library in CUDA_INJECTION64_PATH; the driver loads what is named there when it
// is initialised, and calls InitializeInjection().
#pragma once

namespace tidemark::process::cuda {

/// Subscribes to the driver's memory calls. Where that is not possible, says why in one line and in the recording.
/// Called by the driver, once.
void subscribe() noexcept;

/// Whether the driver's calls are recorded, or would be if recording were not paused. Thread-safe.
[[nodiscard]] bool is_subscribed() noexcept;

/// Switches the calls off while recording is paused, and on again; nothing without a subscription. Some microseconds.
/// Thread-safe.
void enable_calls(bool on) noexcept;

/// Ends the subscription for the benefit of another tool, says so in one line and in the recording. Thread-safe;
/// nothing where there is none.
void unsubscribe_for_tool() noexcept;

/// From here on, whoever looks a subscribing function up in the CUPTI that contains `function` makes this library give
/// way when he calls it. Once, after subscribing.
void watch_lookups(const void* function) noexcept;

}  // namespace tidemark::process::cuda
