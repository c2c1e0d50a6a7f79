#include "collect/process/driver/subscription.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include <atomic>

#include "collect/process/connection.h"
#include "collect/process/driver/driver_calls.h"
#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/later_tools.h"
#include "collect/process/driver/pools.h"

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

// PyTorch's own comes first: it is loaded already. The others are where CUDA's installers put it.
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

/// Says `line` to the user; the recording gets `code`.
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

// An id that an older CUPTI does not know is refused alone: its driver has no such call either. A pool that is
// destroyed in a pause must be heard of: the driver is asked about those that are known.
void enable_calls(bool on) noexcept {
  if (!subscribed.load(std::memory_order_acquire)) return;
  const int saved = errno;
  for (const std::uint32_t id : watched_calls()) {
    if (on || id != id::MemPoolDestroy) cupti.enable(on ? 1 : 0, subscriber, kDriverApiDomain, id);
  }
  errno = saved;
}

void give_way() noexcept {
  if (!subscribed.load(std::memory_order_acquire) || !subscribed.exchange(false, std::memory_order_acq_rel)) return;
  const int saved = errno;
  cupti.unsubscribe(subscriber);
  tell("cupti_taken", "another tool takes CUPTI now; the memory of the CUDA driver is not recorded from here on");
  errno = saved;
}

}  // namespace tidemark::process::cuda
