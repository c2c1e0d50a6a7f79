#include "call.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

namespace fakes {
namespace {

int device_count() {
  return script().value("devices", 1);
}

std::atomic<pid_t> initialized_in{0};  // NOLINT: the library's state, as in the real one

void inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_LAZY);
  if (library == nullptr) return;
  auto* initialize = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
}

}  // namespace

State* state = nullptr;                       // NOLINT
std::atomic<Hook*> hook{nullptr};             // NOLINT
thread_local FakeContext* context = nullptr;  // NOLINT

State::State() : memory(device_count(), script().value("memory", std::uint64_t{80} << 30)) {
  for (Device device = 0; device < device_count(); ++device) {
    contexts.push_back({device, static_cast<std::uint32_t>(device) + 1});
  }
}

bool usable() {
  return initialized_in.load() == ::getpid();
}

bool known(Device device) {
  return device >= 0 && device < device_count();
}

Result scripted(const char* function) {
  static std::mutex lock;
  static std::map<std::string, std::size_t> calls;
  const std::lock_guard guard(lock);
  const nlohmann::json returns = script().value("returns", nlohmann::json::object());
  const nlohmann::json results = returns.value(function, nlohmann::json::array());
  const std::size_t call = calls[function]++;
  return call < results.size() ? results[call].get<Result>() : kSuccess;
}

bool told(const char* function) {
  static const nlohmann::json untold = script().value("untold", nlohmann::json::array());
  return std::find(untold.begin(), untold.end(), function) == untold.end();
}

std::uint32_t next_call_number() {
  static std::atomic<std::uint32_t> calls{0};
  return ++calls;
}

}  // namespace fakes

FAKE void fakes_cuda_set_hook(fakes::Hook* wanted) {
  fakes::hook = wanted;
}

FAKE fakes::Result cuInit(unsigned) {
  using namespace fakes;
  pid_t nobody = 0;
  if (!initialized_in.compare_exchange_strong(nobody, ::getpid())) return usable() ? kSuccess : kNotInitialized;
  state = new State;
  inject();
  return kSuccess;
}

FAKE fakes::Result cuDeviceGetCount(int* count) {
  if (!fakes::usable()) return fakes::kNotInitialized;
  *count = fakes::device_count();
  return fakes::kSuccess;
}
