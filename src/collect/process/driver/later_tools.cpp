// InitializeInjection, and the functions by which tools come to CUPTI.
#include "collect/process/driver/later_tools.h"

#include <array>
#include <utility>

#include "collect/process/driver/subscription.h"
#include "collect/process/forward.h"
#include "collect/process/redirect_definition.h"

#define TIDEMARK_HOOK extern "C" __attribute__((visibility("default"), used))

namespace tidemark::process::cuda {
namespace {

constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED: there is no CUPTI in the process

/// What all of them have in common, as registers hold it: at most four arguments, and a CUptiResult.
using CuptiFunction = int(void*, void*, void*, void*);

int pass_on(const char* symbol, const void* caller, const void* self, void* a, void* b, void* c, void* d) noexcept {
  give_way();
  auto* next = reinterpret_cast<CuptiFunction*>(find_next_definition(symbol, caller, self));
  return next != nullptr ? next(a, b, c, d) : kNotInitialized;
}

constexpr std::array kSubscribing = {"cuptiSubscribe", "cuptiSubscribe_v2", "cuptiActivityRegisterCallbacks"};
void* originals[kSubscribing.size()];

template <std::size_t index>
int looked_up(void* a, void* b, void* c, void* d) noexcept {
  give_way();
  return reinterpret_cast<CuptiFunction*>(originals[index])(a, b, c, d);
}

template <std::size_t... index>
void redirect_all(const void* cupti, std::index_sequence<index...> /*all*/) noexcept {
  (redirect_definition(cupti, kSubscribing[index], reinterpret_cast<void*>(&looked_up<index>), &originals[index]), ...);
}

}  // namespace

void watch_lookups(const void* function) noexcept {
  redirect_all(function, std::make_index_sequence<kSubscribing.size()>());
}

}  // namespace tidemark::process::cuda

TIDEMARK_HOOK int InitializeInjection() {
  tidemark::process::cuda::subscribe();
  return 1;
}

TIDEMARK_HOOK int cuptiSubscribe(void* subscriber, void* callback, void* user_data) {
  return tidemark::process::cuda::pass_on("cuptiSubscribe", __builtin_return_address(0),
                                          reinterpret_cast<const void*>(&cuptiSubscribe), subscriber, callback,
                                          user_data, nullptr);
}

// Of CUPTI 13.2 on, which lets several tools subscribe where the driver does too.
TIDEMARK_HOOK int cuptiSubscribe_v2(void* subscriber, void* callback, void* user_data, void* parameters) {
  return tidemark::process::cuda::pass_on("cuptiSubscribe_v2", __builtin_return_address(0),
                                          reinterpret_cast<const void*>(&cuptiSubscribe_v2), subscriber, callback,
                                          user_data, parameters);
}

TIDEMARK_HOOK int cuptiActivityRegisterCallbacks(void* requested, void* completed) {
  return tidemark::process::cuda::pass_on("cuptiActivityRegisterCallbacks", __builtin_return_address(0),
                                          reinterpret_cast<const void*>(&cuptiActivityRegisterCallbacks), requested,
                                          completed, nullptr, nullptr);
}
