// Tools that come to CUPTI after this library has subscribed: they get the subscription.
//
// Those that are linked with CUPTI reach the functions that this library exports under CUPTI's names. Those that ask
// the loader for a function of the library that they opened (dlsym with a handle) do not: for them CUPTI's own
// definitions lead here.
#pragma once

namespace tidemark::process::cuda {

/// From here on, whoever looks a subscribing function up in the CUPTI that contains `function` makes this library give
/// way when he calls it. Once, after subscribing.
void watch_lookups(const void* function) noexcept;

}  // namespace tidemark::process::cuda
