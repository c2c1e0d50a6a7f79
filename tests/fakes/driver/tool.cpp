// Another profiler: linked with CUPTI, as torch.profiler is.
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

}  // namespace

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
