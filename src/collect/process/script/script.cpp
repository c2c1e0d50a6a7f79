#include "collect/process/script/script.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>

#include "base/audit_hooks.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

extern const char kQuietScript[];

namespace {

template <typename Function>
bool find(const char* name, Function* function) noexcept {
  *function = reinterpret_cast<Function>(python_symbol(name));
  return *function != nullptr;
}

bool find_all(PythonApi* api) noexcept {
  find("PyThreadState_EnterTracing", &api->PyThreadState_EnterTracing);
  find("PyThreadState_LeaveTracing", &api->PyThreadState_LeaveTracing);
  if (!find("Py_IsFinalizing", &api->Py_IsFinalizing)) find("_Py_IsFinalizing", &api->Py_IsFinalizing);  // until 3.12
  bool found = true;
#define TIDEMARK_PYTHON_FIND(result, name, arguments) found = find(#name, &api->name) && found;
  TIDEMARK_PYTHON_FUNCTIONS(TIDEMARK_PYTHON_FIND)
#undef TIDEMARK_PYTHON_FIND
  return found;
}

enum class ApiSearch : int { none, running, found, missing };

constexpr int kFileInput = 257;  // Py_file_input

// Adds a new object to the dict and releases the reference.
bool give(const PythonApi& api, void* dict, const char* name, void* value) noexcept {
  const bool given = value != nullptr && api.PyDict_SetItemString(dict, name, value) == 0;
  if (value != nullptr) api.Py_DecRef(value);
  return given;
}

bool execute(const PythonApi& api, const char* name, const char* text, void* names) noexcept {
  void* code = api.Py_CompileString(text, name, kFileInput);
  if (code == nullptr) return false;
  void* result = api.PyEval_EvalCode(code, names, names);
  api.Py_DecRef(code);
  if (result != nullptr) api.Py_DecRef(result);
  return result != nullptr;
}

}  // namespace

const PythonApi* python_api() noexcept {
  static constinit PythonApi api{};
  static constinit std::atomic<ApiSearch> search{ApiSearch::none};
  ApiSearch now = ApiSearch::none;
  if (search.compare_exchange_strong(now, ApiSearch::running)) {
    now = find_all(&api) ? ApiSearch::found : ApiSearch::missing;
    search.store(now, std::memory_order_release);
  }
  return now == ApiSearch::found ? &api : nullptr;  // while another thread searches, null: call again later
}

bool is_audited() noexcept {
  const PythonApi* api = python_api();
  return api != nullptr && tidemark::is_audited({api->PySys_Audit, api->PyErr_NoMemory, api->PyErr_Clear,
                                                 api->Py_GetVersion, api->PySys_GetObject, api->PyDict_GetItemString});
}

void Script::load() noexcept {
  const PythonApi& api = *python_api();
  void* names = api.PyDict_New();
  if (names == nullptr) return;
  bool complete = api.PyDict_SetItemString(names, "__builtins__", api.PyEval_GetBuiltins()) == 0;
  for (std::size_t index = 0; index < method_count_; ++index) {
    PythonMethod* method = methods_ + index;
    complete = complete && give(api, names, method->name, api.PyCFunction_NewEx(method, nullptr, nullptr));
  }
  complete = complete && execute(api, "<tidemark>/quiet.py", kQuietScript, names) && execute(api, name_, text_, names);
  if (complete) names_ = names;
}

// Runs on the script's thread.
Script::Outcome Script::call(const char* function, void* argument) noexcept {
  const PythonApi& api = *python_api();
  if (names_ == nullptr) return Outcome::failed;
  void* callable = api.PyDict_GetItemString(names_, function);
  if (callable == nullptr) return Outcome::failed;
  void* result = argument != nullptr ? api.PyObject_CallFunctionObjArgs(callable, argument, nullptr)
                                     : api.PyObject_CallFunctionObjArgs(callable, nullptr);
  if (result == nullptr) return Outcome::failed;
  const bool runs_again = api.PyObject_IsTrue(result) == 1;
  api.Py_DecRef(result);
  return runs_again ? Outcome::again : Outcome::done;
}

struct Script::Call {
  Script* script;
  void* interpreter;
  const char* function;
  void* argument;
  Outcome outcome;
};

void* Script::run_call(void* argument) noexcept {
  Call& call = *static_cast<Call*>(argument);
  const PythonApi& api = *python_api();
  void* thread = api.PyThreadState_New(call.interpreter);
  if (thread == nullptr) return nullptr;
  api.PyEval_RestoreThread(thread);
  if (api.PyThreadState_EnterTracing != nullptr) api.PyThreadState_EnterTracing(thread);  // events of sys.monitoring
  if (call.script->interpreter_ == nullptr) {
    call.script->interpreter_ = call.interpreter;
    call.script->load();
  }
  call.outcome = call.script->call(call.function, call.argument);
  api.PyErr_Clear();
  if (api.PyThreadState_LeaveTracing != nullptr) api.PyThreadState_LeaveTracing(thread);
  api.PyThreadState_Clear(thread);
  timespec spent = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  call.script->processor_ns_ +=
      static_cast<std::uint64_t>(spent.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(spent.tv_nsec);
  api.PyThreadState_DeleteCurrent();
  return nullptr;
}

Script::Outcome Script::run(const char* function, void* argument) noexcept {
  const PythonApi* api = python_api();
  if (api == nullptr) return Outcome::failed;
  if (api->Py_IsFinalizing != nullptr && api->Py_IsFinalizing() != 0) return Outcome::failed;
  if (is_audited()) return Outcome::audited;
  // python_api() returns a complete table or null, which the analyzer does not see.
  void* interpreter =
      api->PyThreadState_GetInterpreter(api->PyThreadState_Get());  // NOLINT(clang-analyzer-core.CallAndMessage)
  if (interpreter_ != nullptr && interpreter_ != interpreter) return Outcome::failed;
  Call call{this, interpreter, function, argument, Outcome::failed};
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  if (::pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return Outcome::failed;
  pthread_t thread = {};
  const bool started = ::pthread_create(&thread, nullptr, run_call, &call) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return Outcome::failed;
  void* state = api->PyEval_SaveThread();
  ::pthread_join(thread, nullptr);
  api->PyEval_RestoreThread(state);
  return call.outcome;
}

bool schedule_script(int (*function)(void*)) noexcept {
  const PythonApi* api = python_api();
  return api != nullptr &&
         api->Py_AddPendingCall(function, nullptr) == 0;  // NOLINT(clang-analyzer-core.CallAndMessage): complete
}

}  // namespace tidemark::process
