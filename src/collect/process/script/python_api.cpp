#include "collect/process/script/python_api.h"

#include <atomic>

#include "collect/process/python/python_walker.h"

namespace tidemark::process {
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

}  // namespace tidemark::process
