#include "collect/process/session.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/process/connection.h"
#include "collect/process/filtered.h"
#include "collect/process/lane_writer.h"
#include "collect/process/script/model_script.h"
#include "collect/process/script/objects_script.h"
#include "collect/process/stack_capture.h"
#include "collect/ring/layout.h"

namespace tidemark::process {

namespace {

/// Ends the lanes' connection, so that no thread enters one again, and waits until threads have left their lanes and
/// the slow path behind them (`entering`). Waits at most a second: false if a thread is still there. The gate is
/// closed.
bool wait_until_quiet(ring::Shared* shared, const std::atomic<std::uint32_t>& entering) noexcept;

constexpr long kPauseNs = 100'000;
constexpr int kPauses = 10'000;

void pause() noexcept {
  const timespec duration = {0, kPauseNs};
  ::nanosleep(&duration, nullptr);
}

// A thread marks its lane busy and then checks whether the connection goes on; this thread ends the connection and then
// checks whether the lane is busy. (The gate and the slow path do the same.) In between, the kernel makes every thread
// pass a barrier, so that one of the two sees the other without a barrier in each event. Kernels without the call get
// time instead: a processor's stores become visible within nanoseconds.
void have_all_threads_pass_a_barrier() noexcept {
  if (filtered() || ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) != 0 ||
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) != 0) {
    for (int count = 0; count < 10; ++count) pause();
  }
}

bool somebody_is_busy(const ring::Shared* shared) noexcept {
  for (std::size_t index = 0; index < ring::kLaneCount; ++index) {
    if (shared->lanes[index].busy.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

bool wait_until_quiet(ring::Shared* shared, const std::atomic<std::uint32_t>& entering) noexcept {
  have_all_threads_pass_a_barrier();
  for (int count = 0; entering.load(std::memory_order_acquire) != 0; ++count) {
    if (count == kPauses) return false;
    pause();
  }
  for (std::size_t index = 0; index < ring::kLaneCount; ++index) {
    shared->lanes[index].connection.store(0, std::memory_order_relaxed);
  }
  have_all_threads_pass_a_barrier();
  for (int count = 0; somebody_is_busy(shared); ++count) {
    if (count == kPauses) return false;
    pause();
  }
  return true;
}

enum SessionState : std::uint32_t { kIdle = 0, kConnecting = 1, kActive = 2, kOff = 3 };

constexpr std::int64_t kGrowthBytes = 4 << 20;
constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};

// Used until the constructor has run (events of other libraries' constructors), and if madvise is refused.
Gate fallback_gate;

pthread_key_t exit_key;
bool exit_key_made = false;

// A signal handler that interrupts its own thread in the slow path must not enter it too: it would wait for the
// connection that it interrupts, or take a second lane. Its events are lost, and counted.
thread_local constinit std::atomic<bool> entering __attribute__((tls_model("initial-exec"))) = false;
thread_local constinit std::atomic<std::uint32_t> lost_while_entering __attribute__((tls_model("initial-exec"))) = 0;

Gate* make_gate() noexcept {
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return &fallback_gate;
  if (::madvise(page, size, MADV_WIPEONFORK) != 0) {
    ::munmap(page, size);
    return &fallback_gate;
  }
  return static_cast<Gate*>(page);
}

// For kernels without MADV_WIPEONFORK; harmless elsewhere.
void after_fork_in_child() noexcept {
  session.gate->epoch.store(0, std::memory_order_relaxed);
  session.gate->state.store(kIdle, std::memory_order_relaxed);
  session.gate->entering.store(0, std::memory_order_relaxed);
}

void release_lane(ThreadState* thread) noexcept {
  thread->writer.lane()->call_since.store(0, std::memory_order_relaxed);
  thread->writer.lane()->owner.store(0, std::memory_order_release);
}

// A signal handler between the two stores finds no link. It must not find a new epoch with an old state.
void link_thread(ThreadState* state) noexcept {
  thread_link.state = state;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread_link.epoch = session.epoch;
}

// At thread exit. A forked child that never recorded still has its parent's link: its gate is not active. The link is
// cleared first, so that no signal handler writes into a lane of another thread.
void on_thread_exit(void* /*state*/) noexcept {
  const ThreadLink link = thread_link;
  thread_link.epoch = kNoEpoch;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (session.gate->state.load(std::memory_order_acquire) == kActive && link.epoch == session.epoch) {
    release_lane(link.state);
  }
}

void switch_off(const char* why) noexcept {
  session.gate->epoch.store(0, std::memory_order_relaxed);
  if (session.gate->state.exchange(kOff, std::memory_order_acq_rel) != kOff && why != nullptr) say(why);
}

// Memory of one thread: mapped memory counts against the program's limits (RLIMIT_AS, RLIMIT_DATA), used or not.
ThreadState* map_thread(std::size_t index) noexcept {
  void* const place = reinterpret_cast<void*>(kThreadsAddress + index * kThreadsStride);
  void* thread =
      ::mmap(place, sizeof(ThreadState), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return thread != MAP_FAILED ? static_cast<ThreadState*>(thread) : nullptr;
}

constinit std::atomic<bool> no_room{false};  // for one more: further threads do not try

void unmap_threads() noexcept {
  for (ThreadState*& thread : session.threads) {
    if (thread != nullptr) ::munmap(thread, sizeof(ThreadState));
    thread = nullptr;
  }
}

// Sends memory to the recorder. Memory of an earlier recording of this process stays mapped, because a thread may be
// about to read it; see end_session().
bool connect() noexcept {
  if (filtered()) {
    report_unrecorded(Unrecorded::filtered);  // `tidemark run` prints it: a message here needs more system calls
    return false;
  }
  if (session.shared != nullptr && session.pid != ::getpid()) {  // a forked child: drop the parent's memory
    ::munmap(session.shared, sizeof(ring::Shared));
    unmap_threads();
    session.shared = nullptr;
  }
  no_room.store(false, std::memory_order_relaxed);
  ring::Shared* shared = open_connection(session.clock, session.shared);
  if (shared == nullptr) return false;
  session.shared = shared;
  session.pid = ::getpid();
  session.growth_left.store(kGrowthBytes, std::memory_order_relaxed);
  forget_modules();
  forget_questions();
  ++session.epoch;
  return true;
}

// Resets a lane to the state of unused memory.
void forget_earlier_recording(ThreadState* thread, ring::Lane* lane) noexcept {
  if (thread->epoch == session.epoch) return;
  thread->writer.begin(session.shared, lane);
  thread->codes.clear(false);
  thread->stacks.clear(false);
  thread->line_maps.clear(false);
  thread->autograd.forget();
  thread->autograd.told = {};
  thread->module_count = 0;
  thread->next_stack = 0;
  thread->epoch = session.epoch;
}

ThreadState* barred() noexcept {
  session.shared->control.barred_drops.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

ThreadState* claim_lane() noexcept {
  if (no_room.load(std::memory_order_relaxed)) return barred();
  for (std::size_t index = 0; index < ring::kLaneCount; ++index) {
    ring::Lane* lane = &session.shared->lanes[index];
    if (lane->owner.load(std::memory_order_relaxed) != 0) continue;
    if (filtered()) return barred();
    const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    std::uint32_t free = 0;
    if (!lane->owner.compare_exchange_strong(free, tid, std::memory_order_acq_rel)) continue;
    if (session.threads[index] == nullptr) session.threads[index] = map_thread(index);
    ThreadState* thread = session.threads[index];
    if (thread == nullptr) {
      no_room.store(true, std::memory_order_relaxed);
      lane->owner.store(0, std::memory_order_release);
      return barred();
    }
    forget_earlier_recording(thread, lane);
    lane->connection.store(static_cast<std::uint32_t>(session.epoch), std::memory_order_relaxed);
    thread->writer.open(session.shared, lane);
    thread->stack_bounds = session.stacks.native ? native_stack_bounds() : StackBounds{};
    thread->walks.clear(false);
    thread->autograd.thread_told = false;
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    if (index == 0) describe_process(thread);
    DefinitionWriter definition(&thread->writer, ring::DefinitionKind::thread);
    definition.u32(tid);
    definition.text(name, ::strnlen(name, sizeof(name)));
    if (!definition.finish()) event_dropped(thread);
    return thread;
  }
  session.shared->control.thread_limit_drops.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

ThreadState* enter(Start start) noexcept {
  if (session.paused.load(std::memory_order_relaxed)) return nullptr;
  if (start == Start::no && session.gate->state.load(std::memory_order_relaxed) == kIdle) return nullptr;
  std::uint32_t state = kIdle;
  if (session.gate->state.compare_exchange_strong(state, kConnecting, std::memory_order_acq_rel)) {
    const bool connected = connection_configured() && connect();
    session.gate->state.store(connected ? kActive : kOff, std::memory_order_release);
    if (connected) session.gate->epoch.store(session.epoch, std::memory_order_release);
    state = connected ? kActive : kOff;
  }
  while (state == kConnecting) {  // another thread is connecting: a few system calls, once per process
    ::sched_yield();
    state = session.gate->state.load(std::memory_order_acquire);
  }
  if (state != kActive) return nullptr;
  if (session.shared->control.stop.load(std::memory_order_relaxed) != 0) {
    switch_off(nullptr);  // the recorder has printed the reason
    return nullptr;
  }
  if (thread_link.epoch == session.epoch) return thread_link.state;  // paused and resumed meanwhile
  ThreadState* thread = claim_lane();
  if (thread == nullptr) return nullptr;
  link_thread(thread);
  if (exit_key_made) ::pthread_setspecific(exit_key, thread);
  return thread;
}

void count_lost_while_entering(const ThreadState* thread, std::uint32_t lost) noexcept {
  if (thread != nullptr) {
    thread->writer.lane()->reentrant.fetch_add(lost, std::memory_order_relaxed);
  } else if (session.gate->state.load(std::memory_order_relaxed) == kActive) {
    session.shared->control.thread_limit_drops.fetch_add(lost, std::memory_order_relaxed);
  }
}

const char* setting(const char* const* environment, const char* name) noexcept {
  const std::size_t length = ::strlen(name);
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return *environment + length + 1;
  }
  return nullptr;
}

}  // namespace

Session session = {&fallback_gate, nullptr, {}, 0, 0, ring::Clock::monotonic, {false, false}, false, {false}, {0}};
thread_local constinit ThreadLink thread_link = {kNoEpoch, nullptr};

ThreadState* enter_thread(Start start) noexcept {
  if (entering.load(std::memory_order_relaxed)) {
    lost_while_entering.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  const int saved = errno;
  entering.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  session.gate->entering.fetch_add(1, std::memory_order_acq_rel);
  ThreadState* thread = enter(start);
  session.gate->entering.fetch_sub(1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  entering.store(false, std::memory_order_relaxed);
  const std::uint32_t lost = lost_while_entering.exchange(0, std::memory_order_relaxed);
  if (lost > 0) count_lost_while_entering(thread, lost);
  errno = saved;
  return thread;
}

ThreadState* defining_thread() noexcept {
  if (ThreadState* thread = current_thread(Start::no); thread != nullptr) return thread;
  const bool active = session.gate->state.load(std::memory_order_acquire) == kActive;
  return active && thread_link.epoch == session.epoch ? thread_link.state : nullptr;
}

void event_dropped(ThreadState* thread) noexcept {
  std::atomic<std::uint64_t>& dropped = thread->writer.lane()->dropped;
  const std::uint64_t before = dropped.load(std::memory_order_relaxed);
  dropped.store(before + 1, std::memory_order_relaxed);  // this thread is the only writer
  if (session.shared->control.stop.load(std::memory_order_relaxed) != 0) {
    switch_off(nullptr);
  } else if (before % 65536 == 0 && !filtered()) {
    const int saved = errno;
    if (!recorder_alive()) switch_off("recording stopped: the recorder has exited; the program continues");
    errno = saved;
  }
}

void configure_session(const char* const* environment) noexcept {
  configure_connection(setting(environment, ring::kSocketVariable));
  const char* stacks = setting(environment, ring::kStacksVariable);
  const bool both = stacks != nullptr && ::strcmp(stacks, "both") == 0;
  session.stacks.native = both || (stacks != nullptr && ::strcmp(stacks, "native") == 0);
  session.stacks.python = both || stacks == nullptr || ::strcmp(stacks, "python") == 0;
  const char* filters = setting(environment, ring::kFiltersVariable);
  set_expected_filters(filters == nullptr ? 0 : static_cast<std::uint32_t>(::strtoul(filters, nullptr, 10)));
  const char* attribute = setting(environment, ring::kAttributeVariable);
  session.attribute = attribute == nullptr || ::strcmp(attribute, "off") != 0;
#if defined(__x86_64__)
  const char* clock = setting(environment, ring::kClockVariable);
  session.clock = clock != nullptr && ::strcmp(clock, "tsc") == 0 ? ring::Clock::tsc : ring::Clock::monotonic;
#endif
  if (session.gate == &fallback_gate) session.gate = make_gate();
  if (!exit_key_made) {  // the first time
    if (setting(environment, ring::kPausedVariable) != nullptr) session.paused.store(true, std::memory_order_relaxed);
    exit_key_made = ::pthread_key_create(&exit_key, on_thread_exit) == 0;
    ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
  }
}

bool start_session(const char* const* settings) noexcept {
  const std::uint32_t before = session.gate->state.load(std::memory_order_acquire);
  if (before == kConnecting || (before == kIdle && connection_configured()) || session_is_on()) return false;
  if (before == kActive) end_session();  // the recorder had ended it
  configure_session(settings);
  session.paused.store(false, std::memory_order_relaxed);
  session.gate->epoch.store(0, std::memory_order_relaxed);
  session.gate->state.store(kIdle, std::memory_order_release);
  if (current_thread(Start::yes) != nullptr) return true;
  configure_connection(nullptr);
  return false;
}

bool end_session() noexcept {
  session.gate->epoch.store(0, std::memory_order_release);
  std::uint32_t active = kActive;
  const bool was_active = session.gate->state.compare_exchange_strong(active, kOff, std::memory_order_acq_rel);
  configure_connection(nullptr);  // for children forked from now on
  if (!was_active) return false;
  ring::Shared* const shared = session.shared;
  const bool quiet = wait_until_quiet(shared, session.gate->entering);
  shared->control.ended.store(1, std::memory_order_release);
  if (quiet) {
    close_connection(shared);
  } else {  // a thread may still write there: it is kept, and the next recording gets its own memory
    session.shared = nullptr;
    for (ThreadState*& thread : session.threads) thread = nullptr;
  }
  return true;
}

bool session_is_on() noexcept {
  const std::uint32_t state = session.gate->state.load(std::memory_order_acquire);
  if (state == kActive) return session.shared->control.stop.load(std::memory_order_relaxed) == 0;
  return state != kOff && connection_configured();
}

void pause_session() noexcept {
  if (session.paused.exchange(true, std::memory_order_acq_rel)) return;
  session.gate->epoch.store(0, std::memory_order_release);
}

void resume_session() noexcept {
  if (!session.paused.exchange(false, std::memory_order_acq_rel)) return;
  if (session.gate->state.load(std::memory_order_acquire) == kActive) {
    session.gate->epoch.store(session.epoch, std::memory_order_release);
  }
}

}  // namespace tidemark::process
