#include "collect/process/model/model_script.h"

#include "collect/process/definition_writer.h"
#include "collect/process/model/modules.h"
#include "collect/process/model/python_api.h"
#include "collect/process/python/python_walker.h"
#include "collect/process/recording.h"

namespace tidemark::process {
namespace {

constexpr char kScript[] =
#include "collect/process/model/model_script.inc"
    ;

constexpr int kFileInput = 257;  // Py_file_input

const PythonApi* python = nullptr;
void* ask = nullptr;  // the script's function of that name; lives as long as the interpreter

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

PythonMethod methods[] = {
    {"connection", connection, kNoArguments, nullptr},
    {"outermost_modules", outermost_modules, kNoArguments, nullptr},
    {"tell", tell, kOneArgument, nullptr},
    {"named", named, kOneArgument, nullptr},
    {"died", died, kOneArgument, nullptr},
    {"due", due, kNoArguments, nullptr},
};

// ---- running it ----

// Sets what is new in the dict, whose reference it is given.
bool give(void* dict, const char* name, void* value) noexcept {
  const bool given = value != nullptr && python->PyDict_SetItemString(dict, name, value) == 0;
  if (value != nullptr) python->Py_DecRef(value);
  return given;
}

// Runs the script in a namespace of its own, which is never freed.
void* load_script() noexcept {
  void* names = python->PyDict_New();
  if (names == nullptr) return nullptr;
  bool complete = python->PyDict_SetItemString(names, "__builtins__", python->PyEval_GetBuiltins()) == 0;
  for (PythonMethod& method : methods) {
    complete = complete && give(names, method.name, python->PyCFunction_NewEx(&method, nullptr, nullptr));
  }
  void* result = complete ? python->PyRun_StringFlags(kScript, kFileInput, names, names, nullptr) : nullptr;
  if (result == nullptr) return nullptr;
  python->Py_DecRef(result);
  return python->PyDict_GetItemString(names, "ask");
}

// As Py_AddPendingCall wants it. A signal handler of the program may raise inside the script: what is no Exception,
// such as KeyboardInterrupt, is raised in the program.
int run_script(void* /*argument*/) {
  asking_began();
  void* thread = python->PyThreadState_Get();
  if (python->PyThreadState_EnterTracing != nullptr) python->PyThreadState_EnterTracing(thread);
  static bool loaded = false;
  if (!loaded) ask = load_script();
  loaded = true;
  void* again = ask != nullptr ? python->PyObject_CallObject(ask, nullptr) : nullptr;
  if (python->PyThreadState_LeaveTracing != nullptr) python->PyThreadState_LeaveTracing(thread);
  asking_ended(again != nullptr && python->PyObject_IsTrue(again) == 1);
  if (again != nullptr) {
    python->Py_DecRef(again);
    return 0;
  }
  if (ask != nullptr && python->PyErr_ExceptionMatches(*python->PyExc_Exception) == 0) return -1;
  python->PyErr_Clear();
  return 0;
}

}  // namespace

bool schedule_asking() noexcept {
  const PythonApi* api = python_api();
  if (api == nullptr) return false;
  python = api;
  return api->Py_AddPendingCall(run_script, nullptr) == 0;
}

}  // namespace tidemark::process
