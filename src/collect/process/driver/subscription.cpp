#include "collect/process/driver/subscription.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include <array>
#include <atomic>
#include <utility>

#include "collect/process/connection.h"
#include "collect/process/driver/driver_calls.h"
#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/pools.h"
#include "collect/process/elf_dynamic.h"

#define TIDEMARK_HOOK extern "C" __attribute__((visibility("default"), used))

namespace tidemark::process::cuda {

namespace {

struct Cupti {
  Subscribe* subscribe;
  Unsubscribe* unsubscribe;
  EnableCallback* enable;
};

Cupti cupti;
SubscriberHandle subscriber;
std::atomic<bool> subscribed;

// PyTorch's own comes first: it is loaded already. The others are in the folders of CUDA's installers.
constexpr const char* kCuptiNames[] = {
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
};

void* find_cupti() noexcept {
  for (const int mode : {RTLD_NOLOAD, 0}) {
    for (const char* name : kCuptiNames) {
      if (void* library = ::dlopen(name, RTLD_LAZY | mode); library != nullptr) return library;
    }
  }
  return nullptr;
}

template <typename Function>
bool load(void* library, const char* name, Function** out) noexcept {
  *out = reinterpret_cast<Function*>(::dlsym(library, name));
  return *out != nullptr;
}

bool load_cupti() noexcept {
  void* library = find_cupti();
  return library != nullptr && load(library, "cuptiSubscribe", &cupti.subscribe) &&
         load(library, "cuptiUnsubscribe", &cupti.unsubscribe) && load(library, "cuptiEnableCallback", &cupti.enable);
}

bool load_driver() noexcept {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr && load(library, "cuCtxGetDevice", &driver.context_device) &&
         load(library, "cuDeviceGetMemPool", &driver.device_pool) &&
         load(library, "cuMemPoolGetAttribute", &driver.pool_attribute) &&
         load(library, "cuDeviceGetGraphMemAttribute", &driver.graph_attribute);
}

/// Prints `line` to the user, and adds `code` to the recording.
void tell(const char* code, const char* line) noexcept {
  say(line);
  record_driver_loss(code);
}

void tell_refused(Result result) noexcept {
  if (result == kMultipleSubscribers) {
    return tell("cupti_in_use",
                "another tool uses CUPTI, so the memory of the CUDA driver is not recorded; run without that tool");
  }
  char code[32];
  char line[128];
  ::snprintf(code, sizeof(code), "CUptiResult %d", result);
  ::snprintf(line, sizeof(line), "CUPTI failed (%s): the memory of the CUDA driver is not recorded", code);
  tell(code, line);
}

constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED: the process has no CUPTI

/// The common calling convention of these functions: at most four arguments in registers, and a CUptiResult.
using CuptiFunction = int(void*, void*, void*, void*);

int pass_on(const char* symbol, const void* caller, const void* self, void* a, void* b, void* c, void* d) noexcept {
  unsubscribe_for_tool();
  auto* next = reinterpret_cast<CuptiFunction*>(find_next_definition(symbol, caller, self));
  return next != nullptr ? next(a, b, c, d) : kNotInitialized;
}

constexpr std::array kSubscribing = {"cuptiSubscribe", "cuptiSubscribe_v2", "cuptiActivityRegisterCallbacks"};
void* originals[kSubscribing.size()];

template <std::size_t index>
int looked_up(void* a, void* b, void* c, void* d) noexcept {
  unsubscribe_for_tool();
  return reinterpret_cast<CuptiFunction*>(originals[index])(a, b, c, d);
}

template <std::size_t... index>
void redirect_all(const void* library, std::index_sequence<index...> /*all*/) noexcept {
  (redirect_definition(library, kSubscribing[index], reinterpret_cast<void*>(&looked_up<index>), &originals[index]),
   ...);
}

}  // namespace

void subscribe() noexcept {
  if (!connection_configured() || subscribed.load(std::memory_order_acquire)) return;
  const int saved = errno;
  if (!load_cupti()) {
    tell("cupti_not_found",
         "libcupti.so was not found, so the memory of the CUDA driver is not recorded; install nvidia-cuda-cupti");
  } else if (!load_driver()) {
    tell("driver_too_old", "this CUDA driver is older than 11.4: its memory is not recorded; the program continues");
  } else if (const Result result = cupti.subscribe(&subscriber, on_driver_call, nullptr); result != kSuccess) {
    tell_refused(result);
  } else {
    subscribed.store(true, std::memory_order_release);
    watch_lookups(reinterpret_cast<const void*>(cupti.subscribe));
    if (!session.paused.load(std::memory_order_relaxed)) enable_calls(true);
  }
  errno = saved;
}

bool is_subscribed() noexcept {
  return subscribed.load(std::memory_order_acquire);
}

// An older CUPTI refuses only ids that it does not know: its driver has no such call either. Destroyed pools must be
// seen during a pause too: the driver is queried about all known pools.
void enable_calls(bool on) noexcept {
  if (!subscribed.load(std::memory_order_acquire)) return;
  const int saved = errno;
  for (const std::uint32_t id : watched_calls()) {
    if (on || id != id::MemPoolDestroy) cupti.enable(on ? 1 : 0, subscriber, kDriverApiDomain, id);
  }
  errno = saved;
}

void unsubscribe_for_tool() noexcept {
  if (!subscribed.load(std::memory_order_acquire) || !subscribed.exchange(false, std::memory_order_acq_rel)) return;
  const int saved = errno;
  cupti.unsubscribe(subscriber);
  tell("cupti_taken", "another tool takes CUPTI now; the memory of the CUDA driver is not recorded from here on");
  errno = saved;
}

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

// In CUPTI 13.2 on, which allows several subscribers if the driver does too.
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
