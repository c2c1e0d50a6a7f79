// The cost of one event inside the user's process: the interposed functions themselves, with a real recorder at the
// other end (a thread of this program), real Python frames and real native frames.
//
// Times are of batches small enough for the rings; between batches the recorder catches up, untimed. Counter `dropped`
// must be 0, otherwise the figure is that of dropped events.
#include <Python.h>
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "collect/process/driver/driver_calls.h"
#include "collect/process/driver/pools.h"
#include "collect/process/session.h"
#include "collect/recorder/recorder.h"

extern "C" {
void tidemark_bench_new(void* self, void* address,
                        std::size_t size) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
void tidemark_bench_delete(void* self, void* address) __asm__("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");
}

namespace {

using tidemark::process::session;

constexpr int kPairsPerBatch = 4096;

// Waits until all committed records were read.
void wait_for_recorder() {
  while (true) {
    std::size_t used = 0;
    for (const auto& word : session.shared->free_chunks) {
      used += 64 - static_cast<std::size_t>(__builtin_popcountll(word.load()));
    }
    if (used <= 2) return;  // the chunk being filled stays with its lane
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::uint64_t dropped() {
  std::uint64_t sum = 0;
  for (const auto& lane : session.shared->lanes) sum += lane.dropped.load();
  return sum;
}

// One batch of alloc + free pairs; returns nanoseconds for each event.
double batch() {
  static char blocks[kPairsPerBatch * 16];
  const auto start = std::chrono::steady_clock::now();
  for (int pair = 0; pair < kPairsPerBatch; ++pair) {
    tidemark_bench_new(nullptr, blocks + pair * 16, 4096);
    tidemark_bench_delete(nullptr, blocks + pair * 16);
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / (2 * kPairsPerBatch);
}

// Allocations alone: frees carry no stack, so this is the cost of a stack.
double allocations() {
  static char blocks[kPairsPerBatch * 16];
  const auto start = std::chrono::steady_clock::now();
  for (int index = 0; index < kPairsPerBatch; ++index) tidemark_bench_new(nullptr, blocks + index * 16, 4096);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  const double each = elapsed.count() / kPairsPerBatch;
  for (int index = 0; index < kPairsPerBatch; ++index) tidemark_bench_delete(nullptr, blocks + index * 16);
  return each;
}

namespace cuda = tidemark::process::cuda;

/// The two callbacks that CUPTI makes for a call; CUPTI's own cost is measured by bench/driver_calls.py.
template <typename Parameters>
__attribute__((noinline)) void driver_call(std::uint32_t id, Parameters parameters) {
  std::uint64_t correlation = 0;
  cuda::Result result = cuda::kSuccess;
  cuda::CallbackData data = {cuda::Site::enter, "", &parameters, &result, nullptr, nullptr, 1, &correlation, 1};
  cuda::on_driver_call(nullptr, cuda::kDriverApiDomain, id, &data);
  data.site = cuda::Site::exit;
  cuda::on_driver_call(nullptr, cuda::kDriverApiDomain, id, &data);
}

// Allocations of the driver alone, with their stacks; or frees alone.
template <bool frees>
double driver_calls() {
  double elapsed[2] = {};
  for (const bool freed : {false, true}) {
    const auto start = std::chrono::steady_clock::now();
    for (cuda::DevicePointer block = 1; block <= kPairsPerBatch; ++block) {
      cuda::DevicePointer address = block * 512;
      if (freed) {
        driver_call(cuda::id::MemFree_v2, cuda::FreeParameters{address});
      } else {
        driver_call(cuda::id::MemAlloc_v2, cuda::AllocateParameters{&address, 512});
      }
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    elapsed[freed ? 1 : 0] = took.count() / kPairsPerBatch;
  }
  return elapsed[frees ? 1 : 0];
}

void loop(benchmark::State& state, double (*measure)()) {
  measure();
  const std::uint64_t before = dropped();
  for (auto _ : state) {
    wait_for_recorder();
    state.SetIterationTime(measure() * 1e-9);  // shown as the time of one event
  }
  state.counters["dropped"] = static_cast<double>(dropped() - before);
}

benchmark::State* current_state = nullptr;
double (*current_measure)() = nullptr;

PyObject* run_loop(PyObject* /*self*/, PyObject* /*arguments*/) {
  loop(*current_state, current_measure);
  Py_RETURN_NONE;
}
PyMethodDef run_loop_method = {"run_loop", run_loop, METH_NOARGS, nullptr};

void with_python_frames(benchmark::State& state, double (*measure)()) {
  session.stacks = {true, false};
  current_state = &state;
  current_measure = measure;
  PyObject* globals = PyModule_GetDict(PyImport_AddModule("__main__"));
  PyObject* function = PyCFunction_New(&run_loop_method, nullptr);
  PyDict_SetItemString(globals, "run_loop", function);
  Py_DECREF(function);
  const std::string call = "f(" + std::to_string(state.range(0) - 1) + ")\n";
  PyObject* defined =
      PyRun_String("def f(n):\n  if n == 1: run_loop()\n  else: f(n - 1)\n", Py_file_input, globals, globals);
  PyObject* result = PyRun_String(call.c_str(), Py_file_input, globals, globals);
  if (result == nullptr) PyErr_Print();
  Py_XDECREF(defined);
  Py_XDECREF(result);
}

__attribute__((noinline)) void descend(int depth, benchmark::State& state, double (*measure)()) {
  if (depth == 0) {
    loop(state, measure);
  } else {
    descend(depth - 1, state, measure);
  }
  __asm__ volatile("");  // no tail call: every level is a frame
}

void no_stacks(benchmark::State& state) {
  session.stacks = {false, false};
  loop(state, batch);
}
void python_allocation(benchmark::State& state) {
  with_python_frames(state, allocations);
}
void python_pair(benchmark::State& state) {
  with_python_frames(state, batch);
}
void native_allocation(benchmark::State& state) {
  session.stacks = {false, true};
  descend(static_cast<int>(state.range(0)), state, allocations);
}
void driver_allocation(benchmark::State& state) {
  with_python_frames(state, driver_calls<false>);
}
void driver_free(benchmark::State& state) {
  with_python_frames(state, driver_calls<true>);
}
void paused(benchmark::State& state) {
  session.stacks = {true, false};
  tidemark::process::pause_session();
  for (auto _ : state) state.SetIterationTime(batch() * 1e-9);
  tidemark::process::resume_session();
}

BENCHMARK(no_stacks)->UseManualTime()->Iterations(200);
BENCHMARK(python_allocation)->Arg(6)->Arg(20)->Arg(38)->UseManualTime()->Iterations(200);
BENCHMARK(python_pair)->Arg(20)->UseManualTime()->Iterations(200);
BENCHMARK(native_allocation)->Arg(10)->Arg(30)->Arg(60)->UseManualTime()->Iterations(200);
BENCHMARK(driver_allocation)->Arg(6)->Arg(20)->UseManualTime()->Iterations(200);
BENCHMARK(driver_free)->Arg(6)->UseManualTime()->Iterations(200);
BENCHMARK(no_stacks)->Name("no_stacks_after_20_million_events")->UseManualTime()->Iterations(2500);
BENCHMARK(paused)->UseManualTime()->Iterations(200);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  // Only a regular file is accepted.
  const std::string output = "/tmp/hot_path_bench." + std::to_string(::getpid()) + ".tide";
  auto recorder = tidemark::Recorder::create({.output = output, .overwrite = true, .samples = {false, {}, {}}},
                                             [](const std::string&) {});
  if (!recorder) return 2;
  for (const std::string& variable : (*recorder)->environment()) {
    const auto equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  tidemark::process::configure_session(environ);
  cuda::driver.context_device = [](cuda::Device* device) { return *device = 0; };
  std::atomic<bool> done{false};
  std::thread thread([&] {
    while (!done) (*recorder)->poll_once({});
  });
  Py_Initialize();
  session.stacks = {true, true};
  batch();  // connects
  benchmark::RunSpecifiedBenchmarks();
  done = true;
  thread.join();
  Py_Finalize();
  ::unlink(output.c_str());
  return 0;
}
