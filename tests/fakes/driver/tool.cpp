// Another profiler: linked with CUPTI, like torch.profiler, or one that opens it.
#include <dlfcn.h>

#include <atomic>

#include "driver_api.h"
#include "libraries.h"

using namespace tidemark::process::cuda;

extern "C" {
Subscribe cuptiSubscribe;
Unsubscribe cuptiUnsubscribe;
EnableCallback cuptiEnableCallback;
}

namespace {

std::atomic<int> calls{0};                // NOLINT
SubscriberHandle subscription = nullptr;  // NOLINT

void count(void*, std::uint32_t, std::uint32_t, const CallbackData* data) {
  if (data->site == Site::exit) ++calls;
}

template <typename Function>
Function* by_handle(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(::dlopen("libcupti.so.13", RTLD_LAZY), name));
}

}  // namespace

int fakes_tool_activities_by_handle() {
  return by_handle<Result(void*, void*)>("cuptiActivityRegisterCallbacks")(nullptr, nullptr);
}

int fakes_tool_subscribe_by_handle() {
  const Result result = by_handle<Subscribe>("cuptiSubscribe")(&subscription, count, nullptr);
  if (result == kSuccess) cuptiEnableCallback(1, subscription, kDriverApiDomain, id::MemAlloc_v2);
  return result;
}

int fakes_tool_subscribe() {
  const Result result = cuptiSubscribe(&subscription, count, nullptr);
  if (result == kSuccess) cuptiEnableCallback(1, subscription, kDriverApiDomain, id::MemAlloc_v2);
  return result;
}

int fakes_tool_unsubscribe() {
  return cuptiUnsubscribe(subscription);
}

int fakes_tool_calls() {
  return calls;
}
