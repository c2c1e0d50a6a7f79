#include "collect/process/model/model_script.h"

#include "collect/process/definition_writer.h"
#include "collect/process/event_writer.h"
#include "collect/process/model/modules.h"
#include "collect/process/python/python_walker.h"
#include "collect/process/script/script.h"

namespace tidemark::process {
namespace {

constexpr char kModelScript[] =
#include "collect/process/model/model_script.inc"
    ;

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

// ---- what the script calls, with the GIL ----

// connection() -> number of the recording that the process writes; 0: none
void* connection(void* /*self*/, void* /*none*/) {
  return python_number(defining_thread() != nullptr ? session.epoch : 0);
}

// outermost_modules() -> the outermost module whose call each thread is in
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

// tell(bytes: entries of a ring::DefinitionKind::model) -> whether they were written
void* tell(void* /*self*/, void* entries) {
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
  const bool told = definition.finish();
  if (!told) event_dropped(thread);
  return python_number(told ? 1 : 0);
}

// named(bytes: addresses of modules)
void* named(void* /*self*/, void* addresses) {
  char* data = nullptr;
  std::size_t size = 0;
  if (!bytes_of(addresses, &data, &size)) return nullptr;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t module = 0;
    std::memcpy(&module, data + at, sizeof module);
    modules_named(&module, 1);
  }
  return python_number(0);
}

// died(a weak reference with the address of its module)
void* died(void* /*self*/, void* reference) {
  void* address = python->PyObject_GetAttrString(reference, "address");
  if (address == nullptr) return nullptr;
  module_died(static_cast<std::uintptr_t>(python->PyLong_AsUnsignedLongLong(address)));
  python->Py_DecRef(address);
  return python_number(0);
}

// due() -> whether names are to be asked for
void* due(void* /*self*/, void* /*none*/) {
  return python_number(names_are_due() ? 1 : 0);
}

PythonMethod model_methods[] = {
    {"connection", connection, kNoArguments, nullptr},
    {"outermost_modules", outermost_modules, kNoArguments, nullptr},
    {"tell", tell, kOneArgument, nullptr},
    {"named", named, kOneArgument, nullptr},
    {"died", died, kOneArgument, nullptr},
    {"due", due, kNoArguments, nullptr},
};

// ---- running it ----

constinit Script model_script{kModelScript, model_methods};

int run_script(void* /*argument*/) {
  asking_began();
  const Script::Outcome outcome = model_script.run();
  asking_ended(outcome == Script::Outcome::again);
  return outcome == Script::Outcome::raised ? -1 : 0;
}

}  // namespace

bool schedule_asking() noexcept {
  const PythonApi* api = python_api();
  if (api == nullptr) return false;
  python = api;
  return schedule_script(run_script);
}

}  // namespace tidemark::process
