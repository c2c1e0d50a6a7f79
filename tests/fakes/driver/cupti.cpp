// A library that replaces libcupti.so.13: passes the stand-in driver's calls to its one subscriber. At its end, and at
// each unsubscription, it adds the number of delivered callbacks to FAKES_CUDA_LOG: {"pid", "delivered"}.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "books.h"
#include "driver_api.h"
#include "script.h"

namespace {

using namespace fakes;
using namespace tidemark::process::cuda;

constexpr Result kInvalidParameter = 1;  // CUPTI_ERROR_INVALID_PARAMETER

std::atomic<Callback*> subscriber{nullptr};   // NOLINT
void* user_data = nullptr;                    // NOLINT
std::array<std::atomic<bool>, 1024> enabled;  // NOLINT: by id
std::atomic<std::uint64_t> delivered{0};      // NOLINT

void deliver(std::uint32_t id, const CallbackData& data) {
  Callback* callback = subscriber.load();
  if (callback == nullptr || id >= enabled.size() || !enabled[id]) return;
  ++delivered;
  callback(user_data, kDriverApiDomain, id, &data);
}

void log_delivered() {
  log_line(nlohmann::json{{"pid", ::getpid()}, {"delivered", delivered.exchange(0)}}.dump());
}

[[gnu::destructor]] void at_end() {
  if (subscriber != nullptr) log_delivered();
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE Result cuptiSubscribe(SubscriberHandle* handle, Callback* callback, void* data) {
  if (const Result scripted = script().value("subscribe", kSuccess); scripted != kSuccess) return scripted;
  Callback* nobody = nullptr;
  if (!subscriber.compare_exchange_strong(nobody, callback)) return kMultipleSubscribers;
  user_data = data;
  *handle = &subscriber;
  auto* set_hook = reinterpret_cast<decltype(&fakes_cuda_set_hook)>(
      ::dlsym(::dlopen("libcuda.so.1", RTLD_LAZY), "fakes_cuda_set_hook"));
  set_hook(deliver);
  return kSuccess;
}
FAKE Result cuptiUnsubscribe(SubscriberHandle handle) {
  if (handle != &subscriber || subscriber == nullptr) return kInvalidParameter;
  subscriber = nullptr;
  for (std::atomic<bool>& id : enabled) id = false;
  log_delivered();
  return kSuccess;
}
FAKE Result cuptiEnableCallback(std::uint32_t enable, SubscriberHandle handle, std::uint32_t domain, std::uint32_t id) {
  const bool ours = handle == &subscriber && domain == kDriverApiDomain;
  if (!ours || id >= enabled.size() || id > script().value("largest_id", 1023U)) return kInvalidParameter;
  enabled[id] = enable != 0;
  return kSuccess;
}
FAKE Result cuptiActivityRegisterCallbacks(void* /*buffer_requested*/, void* /*buffer_completed*/) {
  return kSuccess;
}
