#include "collect/process/script/script.h"

#include <atomic>

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
  bool found = find("PyExc_Exception", &api->PyExc_Exception);
#define TIDEMARK_PYTHON_FIND(result, name, arguments) found = find(#name, &api->name) && found;
  TIDEMARK_PYTHON_FUNCTIONS(TIDEMARK_PYTHON_FIND)
#undef TIDEMARK_PYTHON_FIND
  return found;
}

enum class ApiSearch : int { none, running, found, missing };

constexpr int kFileInput = 257;  // Py_file_input

// Sets what is new in the dict, whose reference it is given.
bool give(const PythonApi& api, void* dict, const char* name, void* value) noexcept {
  const bool given = value != nullptr && api.PyDict_SetItemString(dict, name, value) == 0;
  if (value != nullptr) api.Py_DecRef(value);
  return given;
}

bool execute(const PythonApi& api, const char* text, void* names) noexcept {
  void* result = api.PyRun_StringFlags(text, kFileInput, names, names, nullptr);
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
  return now == ApiSearch::found ? &api : nullptr;  // a thread that comes while another one searches asks again later
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
  complete = complete && execute(api, kQuietScript, names) && execute(api, text_, names);
  if (complete) run_ = api.PyDict_GetItemString(names, "run");
}

Script::Outcome Script::run() noexcept {
  const PythonApi* api = python_api();
  if (api == nullptr) return Outcome::failed;
  if (api->Py_IsFinalizing != nullptr && api->Py_IsFinalizing() != 0) return Outcome::failed;
  // python_api() gives a complete table or none, which the analyzer does not see.
  void* thread = api->PyThreadState_Get();  // NOLINT(clang-analyzer-core.CallAndMessage)
  void* interpreter = api->PyThreadState_GetInterpreter(thread);
  if (interpreter_ != nullptr && interpreter_ != interpreter) return Outcome::failed;
  if (api->PyThreadState_EnterTracing != nullptr) api->PyThreadState_EnterTracing(thread);
  if (interpreter_ == nullptr) load();
  interpreter_ = interpreter;
  void* again = run_ != nullptr ? api->PyObject_CallObject(run_, nullptr) : nullptr;
  if (api->PyThreadState_LeaveTracing != nullptr) api->PyThreadState_LeaveTracing(thread);
  if (again != nullptr) {
    const bool runs_again = api->PyObject_IsTrue(again) == 1;
    api->Py_DecRef(again);
    return runs_again ? Outcome::again : Outcome::done;
  }
  if (run_ != nullptr && api->PyErr_ExceptionMatches(*api->PyExc_Exception) == 0) return Outcome::raised;
  api->PyErr_Clear();
  return Outcome::failed;
}

bool schedule_script(int (*function)(void*)) noexcept {
  const PythonApi* api = python_api();
  return api != nullptr &&
         api->Py_AddPendingCall(function, nullptr) == 0;  // NOLINT(clang-analyzer-core.CallAndMessage): complete
}

}  // namespace tidemark::process
