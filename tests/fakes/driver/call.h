// A call of the stand-in driver, made by each of its functions.
#pragma once

#include <unistd.h>

#include <atomic>
#include <deque>

#include "driver_api.h"
#include "memory.h"
#include "script.h"

#define FAKE extern "C" __attribute__((visibility("default")))
/// The enclosing exported function, and its caller.
#define HERE __func__, __builtin_return_address(0)

namespace fakes {

struct FakeContext {
  Device device = 0;
  std::uint32_t uid = 0;
};

/// Created by the first cuInit(). It exists until the process ends: threads may still be calling then.
struct State {
  State();

  Memory memory;
  std::deque<FakeContext> contexts;  ///< the primary ones, by device
};
extern State* state;
extern thread_local FakeContext* context;  ///< the current one
extern std::atomic<Hook*> hook;            ///< CUPTI's

/// cuInit() was called, and in this process.
bool usable();
bool known(Device device);
/// The result of this call of the function in the script.
Result scripted(const char* function);
/// Whether CUPTI is called for the function.
bool told(const char* function);
std::uint32_t next_call_number();

inline std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// `body` implements the function, unless the script makes it fail. CUPTI is called before and after.
template <typename Parameters, typename Body>
Result call(std::uint32_t id, const char* function, const void* caller, Parameters parameters, Body body) {
  if (!usable()) return kNotInitialized;
  if (context == nullptr) return kInvalidContext;
  Result result = kSuccess;
  std::uint64_t correlation = 0;
  CallbackData data;
  data.site = tidemark::process::cuda::Site::enter;
  data.function_name = function;
  data.parameters = &parameters;
  data.return_value = &result;
  data.symbol_name = nullptr;
  data.context = context;
  data.context_uid = context->uid;
  data.correlation_data = &correlation;
  data.correlation_id = next_call_number();
  Hook* const tell = told(function) ? hook.load() : nullptr;
  if (tell != nullptr) tell(id, data);
  current_call = {data.correlation_id, function, caller};
  result = scripted(function);
  if (result == kSuccess) result = body(parameters);
  data.site = tidemark::process::cuda::Site::exit;
  if (tell != nullptr) tell(id, data);
  return result;
}

}  // namespace fakes
