#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "base/audit_hooks.h"
#include "base/step_names.h"
#include "base/thread_without_signals.h"
#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/program_python.h"
#include "phantom/gpu/usage.h"
#include "phantom/values/host_arithmetic.h"

namespace tidemark::phantom {

extern const char kTrainingStepsScript[];

namespace {

// `tidemark plan` ends the processes of a job at once. If it is gone, this process ends by itself.
constexpr std::chrono::minutes kTimeToBeEnded{1};

std::atomic<bool> watched = false;
std::atomic<pid_t> watched_process = 0;  // forked children, which may train on the CPU, have the hook too

// Marks the beginning of each step: analyses use these steps.
void mark_step(std::uint64_t number) {
  static const auto kMark = program_function<void (*)(const char*)>("tidemark_mark");
  if (kMark != nullptr) kMark(("Tidemark.step#" + std::to_string(number)).c_str());
}

void count(std::uint64_t steps, std::uint64_t idle_optimizers, int by_marks) {
  if (getpid() != watched_process.load()) return;
  static std::uint64_t marked = 0;
  count_steps(steps, idle_optimizers, by_marks != 0);
  const auto limit = static_cast<std::uint64_t>(profile().steps);
  const bool is_last = limit != 0 && steps >= limit;
  if (!is_last && steps + 1 > marked) mark_step(marked = steps + 1);
}

// Waits for the end of the process with the GIL, so that no other Python thread continues either.
void stop() {
  if (getpid() != watched_process.load()) return;
  std::fflush(stdout);
  say_stopped();
  std::this_thread::sleep_for(kTimeToBeEnded);
  _exit(0);
}

void end() {
  host_arithmetic().stop();
}

void again() {
  watched.store(false);
}

// The script's function for marks that name steps; it takes the GIL.
std::atomic<void (*)(int kind)> listener = nullptr;
std::atomic<bool> marks_go_to_script = false;

void listen(void (*function)(int kind)) {
  listener.store(function);
}

void listen_in_script(void (*function)(int kind)) {
  marks_go_to_script.store(true);
  listener.store(function);
}

// Names with the same stem as the first one count: "step" may have a "batch" inside.
bool names_the_step(const char* name) {
  const StepName meaning = step_name_of(name);
  if (meaning != StepName::step && meaning != StepName::profiler_step) return false;
  static const std::string kFirst = step_stem(name);
  return step_stem(name) == kFirst;
}

// Steps from marks, for programs without Python, whose optimizers have no hook.
class MarkedSteps {
 public:
  void mark(int kind) {
    const std::lock_guard lock(mutex_);  // kept by the thread that waits in stop(), so that no other continues marking
    const bool completes = kind == kRangeEnd || (kind == kMoment && begun_);
    begun_ = kind == kMoment;
    if (completes) {
      count_steps(++steps_, 0, true);
      const auto limit = static_cast<std::uint64_t>(profile().steps);
      if (limit != 0 && steps_ >= limit) stop();
    }
    if (kind != kRangeEnd) begin_next();
  }
  /// Memory allocated before the first mark belongs to the first step.
  void begin() {
    const std::lock_guard lock(mutex_);
    begin_next();
  }
  /// The program's end completes a step that began with a moment.
  void end() {
    const std::lock_guard lock(mutex_);
    if (begun_) count_steps(++steps_, 0, true);
  }

 private:
  void begin_next() {
    if (steps_ + 1 > marked_) mark_step(marked_ = steps_ + 1);
  }

  static constexpr int kMoment = 0;
  static constexpr int kRangeEnd = 2;
  std::mutex mutex_;
  std::uint64_t steps_ = 0;   // completed steps
  std::uint64_t marked_ = 0;  // the latest step that has begun
  bool begun_ = false;        // a moment that begins a step was marked
};

// Never destroyed: threads may mark while the process ends.
MarkedSteps& marked_steps() {
  static auto* const kSteps = new MarkedSteps;
  return *kSteps;
}

void count_marks_alone() {
  marked_steps().begin();
  listen([](int kind) { marked_steps().mark(kind); });
  std::atexit([] {
    listen(nullptr);
    if (getpid() == watched_process.load()) marked_steps().end();
  });
}

template <typename Function>
std::string address(Function* function) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(function));
}

// Calls the function on a new thread, while the calling one waits, which releases the GIL if it holds it. CPython calls
// the program's signal handlers only on its main thread: their exceptions cannot reach Python code on another one.
template <typename Function>
void run_aside(const Function& function) {
  const auto has_gil = program_function<int (*)()>("PyGILState_Check");
  const auto give = program_function<void* (*)()>("PyEval_SaveThread");
  const auto take = program_function<void (*)(void*)>("PyEval_RestoreThread");
  if (has_gil == nullptr || give == nullptr || take == nullptr) return;
  void* state = has_gil() != 0 ? give() : nullptr;
  thread_without_signals(function).join();
  if (state != nullptr) take(state);
}

// Call it with the GIL.
bool is_audited() {
  return tidemark::is_audited({program_function<int (*)(const char*, const char*, ...)>("PySys_Audit"),
                               program_function<void* (*)()>("PyErr_NoMemory"),
                               program_function<void (*)()>("PyErr_Clear"),
                               program_function<const char* (*)()>("Py_GetVersion"),
                               program_function<void* (*)(const char*)>("PySys_GetObject"),
                               program_function<void* (*)(void*, const char*)>("PyDict_GetItemString")});
}

// The script has its own namespace, not __main__'s.
void run_script() {
  const auto take = program_function<int (*)()>("PyGILState_Ensure");
  const auto release = program_function<void (*)(int)>("PyGILState_Release");
  const auto run = program_function<int (*)(const char*, void*)>("PyRun_SimpleStringFlags");
  if (take == nullptr || release == nullptr || run == nullptr) return;
  const std::string text = std::string("exec(r'''") + kTrainingStepsScript + "\nstart(" +
                           std::to_string(profile().steps) + ", " + address(count) + ", " + address(stop) + ", " +
                           address(again) + ", " + address(listen_in_script) + ", " + address(end) +
                           ")''', {'__name__': 'tidemark_training_steps'})\n";
  const int state = take();
  const bool audited = is_audited();
  if (audited)
    count_marks_alone();
  else
    run(text.c_str(), nullptr);
  if (!audited) host_arithmetic().start();
  release(state);
}

// The signature required by Py_AddPendingCall.
int run_script_aside(void* /*argument*/) {
  run_aside(run_script);
  return 0;
}

}  // namespace

/// The recording library calls this for each mark of the program.
TIDEMARK_PHANTOM_API void tidemark_on_mark(int kind, const char* name) {
  const auto function = listener.load();
  if (function == nullptr || getpid() != watched_process.load() || !names_the_step(name)) return;
  if (marks_go_to_script.load())
    run_aside([function, kind] { function(kind); });
  else
    function(kind);
}

void watch_training_steps() {
  if (watched.load(std::memory_order_relaxed) || watched.exchange(true) || profile().steps < 0) return;
  watched_process.store(getpid());
  const auto is_initialized = program_function<int (*)()>("Py_IsInitialized");
  const auto add_pending = program_function<int (*)(int (*)(void*), void*)>("Py_AddPendingCall");
  if (is_initialized == nullptr) return count_marks_alone();
  if (add_pending == nullptr || is_initialized() == 0) return;
  if (syscall(SYS_gettid) != getpid()) {
    // The main thread may wait for the training thread.
    thread_without_signals(run_script).detach();
  } else if (add_pending(run_script_aside, nullptr) != 0) {
    again();  // the queue is full
  }
}

}  // namespace tidemark::phantom
