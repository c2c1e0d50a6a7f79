#include "phantom/values/host_arithmetic.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/thread_without_signals.h"
#include "phantom/gpu/abi.h"
#include "phantom/gpu/memory.h"
#include "phantom/gpu/program_python.h"
#include "phantom/values/observed_calls.h"

namespace tidemark::phantom {

extern const char kHostArithmeticScript[];

namespace {

using PyObject = void;

// The part of CPython's stable interface that passes arguments.
struct PythonObjects {
  PyObject* (*tuple)(std::ptrdiff_t) = program_function<PyObject* (*)(std::ptrdiff_t)>("PyTuple_New");
  int (*set_in_tuple)(PyObject*, std::ptrdiff_t,
                      PyObject*) = program_function<int (*)(PyObject*, std::ptrdiff_t, PyObject*)>("PyTuple_SetItem");
  PyObject* (*list)(std::ptrdiff_t) = program_function<PyObject* (*)(std::ptrdiff_t)>("PyList_New");
  int (*set_in_list)(PyObject*, std::ptrdiff_t,
                     PyObject*) = program_function<int (*)(PyObject*, std::ptrdiff_t, PyObject*)>("PyList_SetItem");
  PyObject* (*integer)(long long) = program_function<PyObject* (*)(long long)>("PyLong_FromLongLong");
  PyObject* (*number)(double) = program_function<PyObject* (*)(double)>("PyFloat_FromDouble");
  PyObject* (*boolean)(long) = program_function<PyObject* (*)(long)>("PyBool_FromLong");
  PyObject* (*text)(const char*, std::ptrdiff_t) =
      program_function<PyObject* (*)(const char*, std::ptrdiff_t)>("PyUnicode_FromStringAndSize");
  PyObject* (*memory)(char*, std::ptrdiff_t,
                      int) = program_function<PyObject* (*)(char*, std::ptrdiff_t, int)>("PyMemoryView_FromMemory");
  PyObject* (*call)(PyObject*,
                    PyObject*) = program_function<PyObject* (*)(PyObject*, PyObject*)>("PyObject_CallObject");
  PyObject* (*item)(PyObject*,
                    std::ptrdiff_t) = program_function<PyObject* (*)(PyObject*, std::ptrdiff_t)>("PyTuple_GetItem");
  long long (*value)(PyObject*) = program_function<long long (*)(PyObject*)>("PyLong_AsLongLong");
  void (*keep)(PyObject*) = program_function<void (*)(PyObject*)>("Py_IncRef");
  void (*drop)(PyObject*) = program_function<void (*)(PyObject*)>("Py_DecRef");
  void (*clear_error)() = program_function<void (*)()>("PyErr_Clear");
  int (*run)(const char*, void*) = program_function<int (*)(const char*, void*)>("PyRun_SimpleStringFlags");
  int (*take_gil)() = program_function<int (*)()>("PyGILState_Ensure");
  int (*has_gil)() = program_function<int (*)()>("PyGILState_Check");
  void* (*leave)() = program_function<void* (*)()>("PyEval_SaveThread");
  void (*enter)(void*) = program_function<void (*)(void*)>("PyEval_RestoreThread");
  int (*pause_collector)() = program_function<int (*)()>("PyGC_Disable");
  int (*resume_collector)() = program_function<int (*)()>("PyGC_Enable");
  PyObject* none = program_function<PyObject*>("_Py_NoneStruct");

  [[nodiscard]] bool complete() const {
    return tuple != nullptr && set_in_tuple != nullptr && list != nullptr && set_in_list != nullptr &&
           integer != nullptr && number != nullptr && boolean != nullptr && text != nullptr && memory != nullptr &&
           call != nullptr && item != nullptr && value != nullptr && keep != nullptr && drop != nullptr &&
           clear_error != nullptr && run != nullptr && take_gil != nullptr && has_gil != nullptr && leave != nullptr &&
           enter != nullptr && pause_collector != nullptr && resume_collector != nullptr && none != nullptr;
  }
};

const PythonObjects& python() {
  static const PythonObjects kPython;
  return kPython;
}

std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A thread that runs one piece of work at a time, with the GIL.
class Worker {
 public:
  /// Runs `work` on the thread and waits for it. False if the thread cannot get the GIL, so that it did not run.
  bool run(const std::function<void()>& work) {
    if (!running_.load() || process_ != getpid()) return false;
    const PythonObjects& all = python();
    void* const state = all.has_gil() != 0 ? all.leave() : nullptr;
    const bool done = run_without_gil(work);
    if (state != nullptr) all.enter(state);
    return done;
  }

  /// Starts the thread, which runs `first` before all others. Returns when that is done.
  void start(const std::function<void()>& first) {
    process_ = getpid();
    thread_without_signals([this] { serve(); }).detach();
    running_.store(true);
    if (!run(first)) running_.store(false);
  }
  void stop() { running_.store(false); }
  [[nodiscard]] bool is_running() const { return running_.load(std::memory_order_relaxed); }
  /// Processor time of all its work.
  [[nodiscard]] std::int64_t spent() const { return spent_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint8_t { idle, asked, taken, done };

  bool run_without_gil(const std::function<void()>& work) {
    const std::lock_guard turn(turn_);
    std::unique_lock lock(mutex_);
    work_ = &work;
    state_ = State::asked;
    changed_.notify_all();
    // The thread that has the GIL may wait for this one.
    if (!changed_.wait_for(lock, kPatience, [this] { return state_ != State::asked; })) {
      state_ = State::idle;
      return false;
    }
    changed_.wait(lock, [this] { return state_ == State::done; });
    state_ = State::idle;
    return true;
  }

  void serve() {
    const PythonObjects& all = python();
    if (auto* const leave_out = program_function<void (*)()>("tidemark_leave_thread_out")) leave_out();
    // Other threads are the program's, and their time is not measured.
    if (auto* const use_threads = program_function<void (*)(int)>("omp_set_num_threads")) use_threads(1);
    all.take_gil();
    void* python_state = all.leave();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return state_ == State::asked; });
      lock.unlock();
      all.enter(python_state);
      lock.lock();
      if (state_ == State::asked) {
        state_ = State::taken;
        lock.unlock();
        changed_.notify_all();
        // The arithmetic must not decide when the program's objects are collected, and with them device memory freed.
        const int collects = all.pause_collector();
        const std::int64_t before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        (*work_)();
        spent_.fetch_add(nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before, std::memory_order_relaxed);
        if (collects != 0) all.resume_collector();
        lock.lock();
        state_ = State::done;
      }
      lock.unlock();
      python_state = all.leave();
      changed_.notify_all();
      lock.lock();
    }
  }

  static constexpr std::chrono::seconds kPatience{5};
  std::atomic<bool> running_ = false;
  std::atomic<std::int64_t> spent_ = 0;
  pid_t process_ = 0;
  std::mutex turn_;  // of a caller
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::idle;
  const std::function<void()>* work_ = nullptr;
};

// Never destroyed: threads may use it while the process ends.
Worker& worker() {
  static auto* const kWorker = new Worker;
  return *kWorker;
}

// The script's functions.
PyObject* describe_function = nullptr;
PyObject* begin_function = nullptr;
PyObject* finish_function = nullptr;
PyObject* compute_function = nullptr;
std::atomic<std::int64_t> time_at_start = 0;

int keep_functions(PyObject* describe, PyObject* begin, PyObject* finish, PyObject* compute) {
  for (PyObject* const function : {describe, begin, finish, compute}) python().keep(function);
  describe_function = describe;
  begin_function = begin;
  finish_function = finish;
  compute_function = compute;
  time_at_start.store(nanoseconds(CLOCK_PROCESS_CPUTIME_ID));
  return 1;
}

PyObject* make_none() {
  python().keep(python().none);
  return python().none;
}

PyObject* make_integers(const std::vector<std::int64_t>& values) {
  PyObject* const tuple = python().tuple(static_cast<std::ptrdiff_t>(values.size()));
  for (std::size_t index = 0; index < values.size(); ++index)
    python().set_in_tuple(tuple, static_cast<std::ptrdiff_t>(index), python().integer(values[index]));
  return tuple;
}

// (memory or None, type, sizes, strides)
PyObject* make_tensor(const TorchTensor& tensor, const char* data) {
  constexpr int kWritable = 0x200;
  const std::int64_t bytes = tensor.extent();
  PyObject* const tuple = python().tuple(4);
  python().set_in_tuple(tuple, 0,
                        bytes == 0 ? make_none() : python().memory(const_cast<char*>(data), bytes, kWritable));
  python().set_in_tuple(tuple, 1, python().integer(tensor.type));
  python().set_in_tuple(tuple, 2, make_integers(tensor.sizes));
  python().set_in_tuple(tuple, 3, make_integers(tensor.strides));
  return tuple;
}

PyObject* make_list(const std::vector<Argument>& arguments);

PyObject* make_object(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::integer:
      return python().integer(argument.integer);
    case Argument::Kind::number:
      return python().number(argument.number);
    case Argument::Kind::boolean:
      return python().boolean(static_cast<long>(argument.integer));
    case Argument::Kind::text:
      return python().text(argument.text.data(), static_cast<std::ptrdiff_t>(argument.text.size()));
    case Argument::Kind::cpu:
      return python().text("cpu", 3);
    case Argument::Kind::tensor:
      return make_tensor(argument.tensor, argument.tensor.on_device ? argument.tensor.data : argument.bytes.data());
    case Argument::Kind::list:
      return make_list(argument.list);
    default:
      return make_none();
  }
}

PyObject* make_list(const std::vector<Argument>& arguments) {
  PyObject* const list = python().list(static_cast<std::ptrdiff_t>(arguments.size()));
  for (std::size_t index = 0; index < arguments.size(); ++index)
    python().set_in_list(list, static_cast<std::ptrdiff_t>(index), make_object(arguments[index]));
  return list;
}

PyObject* make_tensors(const std::vector<TorchTensor>& tensors) {
  PyObject* const list = python().list(static_cast<std::ptrdiff_t>(tensors.size()));
  for (std::size_t index = 0; index < tensors.size(); ++index)
    python().set_in_list(list, static_cast<std::ptrdiff_t>(index),
                         tensors[index].type < 0 ? make_none() : make_tensor(tensors[index], tensors[index].data));
  return list;
}

// Calls a function of the script, which takes over the arguments. Null after an exception.
template <std::size_t kCount>
PyObject* call(PyObject* function, const std::array<PyObject*, kCount>& arguments) {
  PyObject* const tuple = python().tuple(kCount);
  for (std::size_t index = 0; index < kCount; ++index)
    python().set_in_tuple(tuple, static_cast<std::ptrdiff_t>(index), arguments[index]);
  PyObject* const result = python().call(function, tuple);
  python().drop(tuple);
  if (result == nullptr) python().clear_error();
  return result;
}

// The same of a function that returns a number; below 0 after an exception.
template <std::size_t kCount>
std::int64_t call_for_number(PyObject* function, const std::array<PyObject*, kCount>& arguments) {
  PyObject* const result = call(function, arguments);
  if (result == nullptr) return -1;
  const std::int64_t value = python().value(result);
  python().drop(result);
  return value;
}

template <typename Function>
std::string script_address(Function* function) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(function));
}

}  // namespace

void HostArithmetic::start() {
  static std::atomic<bool> started = false;
  const char* const wanted = std::getenv("TIDEMARK_PLAN_VALUES");
  if (wanted != nullptr && std::strcmp(wanted, "off") == 0) return;
  if (!python().complete() || started.exchange(true)) return;
  void* const state = python().leave();
  worker().start([] {
    const std::string text = std::string("exec(r'''") + kHostArithmeticScript + "\nstart(" +
                             script_address(open_torch) + ", " + script_address(observe_calls) + ", " +
                             script_address(check_tensor) + ", " + script_address(check_call) + ", " +
                             script_address(keep_functions) + ")''', {'__name__': 'tidemark_host_arithmetic'})\n";
    python().run(text.c_str(), nullptr);
  });
  python().enter(state);
  if (compute_function == nullptr) {
    worker().stop();
    return;
  }
  begin_observation();
}

void HostArithmetic::stop() {
  worker().stop();
}

std::int64_t HostArithmetic::largest_bytes() const {
  if (!worker().is_running()) return 0;
  struct Stage {
    double share;        // of the program's own processor time
    std::int64_t start;  // nanoseconds that it may spend anyway
    std::int64_t bytes;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  // A plan takes some five seconds before its first step. So it takes at most twice its time.
  constexpr std::array<Stage, 3> kStages = {
      {{0.4, 5 * kSecond / 2, kKnownCopyBytes}, {0.6, 7 * kSecond / 2, 64 << 10}, {0.8, 9 * kSecond / 2, 1 << 10}}};
  const std::int64_t spent = worker().spent();
  if (spent < kStages[0].start) return kStages[0].bytes;
  const auto own = static_cast<double>(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - time_at_start.load() - spent);
  for (const Stage& stage : kStages)
    if (static_cast<double>(spent - stage.start) < stage.share * own) return stage.bytes;
  return 0;
}

std::optional<OperatorFacts> HostArithmetic::describe(const char* name, const char* overload) {
  std::optional<OperatorFacts> facts;
  worker().run([&] {
    const std::string_view operator_name(name);
    const std::string_view overload_name(overload);
    PyObject* const found = call<2>(
        describe_function, {python().text(operator_name.data(), static_cast<std::ptrdiff_t>(operator_name.size())),
                            python().text(overload_name.data(), static_cast<std::ptrdiff_t>(overload_name.size()))});
    if (found == nullptr) return;
    std::ptrdiff_t place = 0;
    const auto next = [&] { return python().value(python().item(found, place++)); };
    facts.emplace();
    facts->number = next();
    facts->arguments = static_cast<std::size_t>(next());
    facts->results = static_cast<std::size_t>(next());
    facts->written = static_cast<std::uint64_t>(next());
    facts->overwritten = static_cast<std::uint64_t>(next());
    facts->out = static_cast<std::uint64_t>(next());
    facts->delivered = next();
    facts->comparison = next();
    for (bool* const flag : {&facts->ignored, &facts->computable, &facts->zeroes, &facts->copies, &facts->reads})
      *flag = next() != 0;
    python().drop(found);
  });
  return facts;
}

std::optional<std::int64_t> HostArithmetic::begin(const OperatorFacts& facts, const std::vector<Argument>& arguments,
                                                  std::int64_t ticket) {
  std::int64_t count = -1;
  worker().run([&] {
    count = call_for_number<3>(begin_function,
                               {python().integer(facts.number), make_list(arguments), python().integer(ticket)});
  });
  return count < 0 ? std::nullopt : std::optional(count);
}

bool HostArithmetic::finish(std::int64_t ticket, const std::vector<TorchTensor>& results) {
  bool done = false;
  worker().run([&] {
    done = call_for_number<2>(finish_function, {python().integer(ticket), make_tensors(results)}) > 0;
  });
  return done;
}

bool HostArithmetic::compute(const OperatorFacts& facts, const std::vector<Argument>& arguments,
                             const std::vector<TorchTensor>& results) {
  bool done = false;
  worker().run([&] {
    done = call_for_number<3>(compute_function,
                              {python().integer(facts.number), make_list(arguments), make_tensors(results)}) > 0;
  });
  return done;
}

HostArithmetic& host_arithmetic() {
  static auto* const kArithmetic = new HostArithmetic;
  return *kArithmetic;
}

}  // namespace tidemark::phantom
