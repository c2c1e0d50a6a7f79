#include "collect/process/script/model_script.h"

#include "collect/process/event_writer.h"
#include "collect/process/lane_writer.h"
#include "collect/process/python/address_set.h"
#include "collect/process/python/python_walker.h"
#include "collect/process/script/script.h"
#include "collect/process/stack_capture.h"

namespace tidemark::process {

extern const char kModelScript[];

namespace {

// The script takes at most a hundredth of the time, after a first allowance of some milliseconds of processor time:
// waiting for a processor on a busy machine does not count.
constexpr std::uint64_t kUnboundedNs = 40'000'000;
constexpr std::uint64_t kShare = 100;

constinit AddressSet seen;
constinit std::atomic<bool> names_wanted{false};
constinit std::atomic<bool> scheduled{false};
constinit std::atomic<std::uint64_t> first_ns{0};
constinit std::atomic<std::uint64_t> spent_ns{0};

bool names_due() noexcept {
  if (!names_wanted.load(std::memory_order_relaxed)) return false;
  std::uint64_t began = 0;
  const std::uint64_t now = ring::monotonic_ns();
  if (first_ns.compare_exchange_strong(began, now)) began = now;
  return spent_ns.load(std::memory_order_relaxed) <= kUnboundedNs + (now - began) / kShare;
}

// Informs the recorder, and counts.
void free_module(std::uintptr_t module) noexcept {
  const std::uint64_t count = freed_modules.load(std::memory_order_relaxed) + 1;
  if (ThreadState* thread = defining_thread(); thread != nullptr) {
    const detail::BusyLane busy(thread->writer.lane());
    if (busy.entered()) {
      DefinitionWriter definition(&thread->writer, ring::DefinitionKind::module_death);
      definition.u64(module);
      definition.u64(count);
      if (!definition.finish()) event_dropped(thread);
    }
  }
  seen.erase(module);
  freed_modules.store(count, std::memory_order_release);
}

// ---- functions for the script, called with the GIL ----

const PythonApi* python = nullptr;

void* python_number(std::uint64_t value) noexcept {
  return python->PyLong_FromUnsignedLongLong(value);
}

bool bytes_of(void* object, char** data, std::size_t* size) noexcept {
  std::ptrdiff_t length = 0;
  if (python->PyBytes_AsStringAndSize(object, data, &length) != 0) return false;
  *size = static_cast<std::size_t>(length);
  return true;
}

// connection() -> number of the recording that the process writes; 0: none
void* connection(void* /*self*/, void* /*none*/) {
  return python_number(defining_thread() != nullptr ? session.epoch : 0);
}

// outermost_modules() -> the outermost module that each thread is calling
void* outermost_modules(void* /*self*/, void* /*none*/) {
  void* list = python->PyList_New(0);
  if (list == nullptr) return nullptr;
  void* interpreter = python->PyThreadState_GetInterpreter(python->PyThreadState_Get());
  for (void* thread = python->PyInterpreterState_ThreadHead(interpreter); thread != nullptr;
       thread = python->PyThreadState_Next(thread)) {
    const std::uintptr_t module = python_outermost_module(thread);
    if (module != 0 && python->PyList_Append(list, reinterpret_cast<void*>(module)) != 0) python->PyErr_Clear();
  }
  return list;
}

// write_model(bytes: entries of a ring::DefinitionKind::model) -> whether they were written
void* write_model(void* /*self*/, void* entries) {
  char* data = nullptr;
  std::size_t size = 0;
  if (!bytes_of(entries, &data, &size)) return nullptr;
  ThreadState* thread = defining_thread();
  if (thread == nullptr) return python_number(0);
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return python_number(0);
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::model);
  definition.u64(module_generation());
  definition.u64(ticks(session.clock));
  definition.bytes(data, size);
  const bool written = definition.finish();
  if (!written) event_dropped(thread);
  return python_number(written ? 1 : 0);
}

// modules_named(bytes: addresses of modules)
void* modules_named(void* /*self*/, void* addresses) {
  char* data = nullptr;
  std::size_t size = 0;
  if (!bytes_of(addresses, &data, &size)) return nullptr;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t module = 0;
    std::memcpy(&module, data + at, sizeof module);
    seen.insert(module);
  }
  return python_number(0);
}

// module_freed(a weak reference with the address of its module)
void* module_freed(void* /*self*/, void* reference) {
  void* address = python->PyObject_GetAttrString(reference, "address");
  if (address == nullptr) return nullptr;
  free_module(static_cast<std::uintptr_t>(python->PyLong_AsUnsignedLongLong(address)));
  python->Py_DecRef(address);
  return python_number(0);
}

// ---- running it ----

extern Script model_script;

constinit std::atomic<bool> audited{false};  // reported

void tell_audited() noexcept {
  if (audited.exchange(true)) return;
  ThreadState* thread = defining_thread();
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (busy.entered()) describe_loss(thread, QualityId::audit_hooks, "");
}

Script::Outcome run_model_script(const char* function, void* argument) noexcept {
  const std::uint64_t before = model_script.processor_ns();
  const Script::Outcome outcome = model_script.run(function, argument);
  spent_ns.fetch_add(model_script.processor_ns() - before, std::memory_order_relaxed);
  if (outcome == Script::Outcome::audited) tell_audited();
  return outcome;
}

// ---- functions for the script on the program's threads ----

// has_audit_hooks() -> whether the program has audit hooks: then no script may run in it
void* audit_hooks_exist(void* /*self*/, void* /*none*/) {
  return python_number(is_audited() ? 1 : 0);
}

// names_are_due() -> whether names must be sent again
void* names_are_due(void* /*self*/, void* /*none*/) {
  return python_number(names_due() ? 1 : 0);
}

// send_optimizer(optimizer)
void* send_optimizer(void* /*self*/, void* optimizer) {
  run_model_script("send_optimizer_now", optimizer);
  return python_number(0);
}

PythonMethod model_methods[] = {
    {"connection", connection, kNoArguments, nullptr},
    {"outermost_modules", outermost_modules, kNoArguments, nullptr},
    {"write_model", write_model, kOneArgument, nullptr},
    {"modules_named", modules_named, kOneArgument, nullptr},
    {"module_freed", module_freed, kOneArgument, nullptr},
    {"has_audit_hooks", audit_hooks_exist, kNoArguments, nullptr},
    {"names_are_due", names_are_due, kNoArguments, nullptr},
    {"send_optimizer", send_optimizer, kOneArgument, nullptr},
};

constinit Script model_script{"<tidemark>/model_script.py", kModelScript, model_methods};

int run_scheduled(void* /*argument*/) {
  names_wanted.store(false, std::memory_order_relaxed);
  if (run_model_script("run", nullptr) == Script::Outcome::again) names_wanted.store(true, std::memory_order_relaxed);
  scheduled.store(false);
  return 0;
}

bool schedule_model_script() noexcept {
  const PythonApi* api = python_api();
  if (api == nullptr) return false;
  python = api;
  return schedule_script(run_scheduled);
}

}  // namespace

void module_seen(std::uintptr_t module) noexcept {
  if (seen.insert(module)) names_wanted.store(true, std::memory_order_relaxed);
  if (!names_due() || scheduled.exchange(true)) return;
  if (!schedule_model_script()) scheduled.store(false);
}

void forget_modules() noexcept {
  if (first_ns.exchange(0) != 0) seen.clear();  // it is large, and empty if no module was seen
  names_wanted.store(false, std::memory_order_relaxed);
  scheduled.store(false);
  spent_ns.store(0, std::memory_order_relaxed);
  audited.store(false);
  freed_modules.store(0, std::memory_order_release);
}

}  // namespace tidemark::process
