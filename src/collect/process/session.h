// The recording of this process: its shared memory, its threads' lanes, and whether it is on.
//
// Hot path: current_thread() compares two words. Everything else (connecting to the recorder, claiming a lane, noticing
// a fork) is in the slow path behind it. These functions never throw, lock, or block; failures switch recording off for
// good, with one line on stderr.
//
// Fork: the page that says "on" is wiped by the kernel in the child (MADV_WIPEONFORK), so a child, however it was
// created, finds itself unconnected at its first allocation and starts its own recording; the parent's memory is
// unchanged. A free does not start one: a child that only frees inherited memory has nothing to record.
#pragma once

#include <atomic>
#include <cstdint>

#include "collect/process/autograd.h"
#include "collect/process/key_table.h"
#include "collect/process/lane_writer.h"
#include "collect/process/native/walk_memo.h"
#include "collect/process/python/python_walker.h"
#include "collect/ring/layout.h"

namespace tidemark::process {

/// Private state of a thread. Lives in zero-filled private memory, one for each lane, reused with the lane.
struct ThreadState {
  LaneWriter writer;
  StackBounds stack_bounds;
  std::uint64_t epoch;  ///< of the connection to which this state belongs
  std::uint64_t python_generation;
  std::uint64_t module_generation;
  std::uint32_t next_stack;  ///< number of the next stack to be defined in this lane
  std::uint32_t module_count;
  struct Range {
    std::uintptr_t start, end;
  } modules[256];           ///< modules defined in this lane
  KeyTable<4096> codes;     ///< code objects defined in this lane → see describe_code()
  KeyTable<32768> stacks;   ///< stack hash → number
  KeyTable<512> line_maps;  ///< generated files with line maps defined in this lane, by the hash in their names
  WalkMemo walks;           ///< of the thread that has the lane now
  AutogradLane autograd;
  PythonFrame python_frames[ring::kMaxFrames];
  std::uintptr_t native_frames[ring::kMaxFrames];
};

struct StackMode {
  bool python;
  bool native;
};

/// State that must be reset in a forked child.
struct Gate {
  std::atomic<std::uint64_t> epoch;  ///< 0 = closed (off, paused, or not connected); else the number of the connection
  std::atomic<std::uint32_t> state;  ///< SessionState
  std::atomic<std::uint32_t> entering;  ///< threads in the slow path
};

struct Session {
  Gate* gate;                              ///< in memory that the kernel wipes on fork
  ring::Shared* shared;                    ///< null until connected
  ThreadState* threads[ring::kLaneCount];  ///< each created when its lane is first claimed
  std::uint64_t epoch;                     ///< of the latest connection
  std::int32_t pid;                        ///< of the process that made the connection
  ring::Clock clock;
  StackMode stacks;
  bool attribute;  ///< record modules and their tensors, and autograd nodes
  std::atomic<bool> paused;
  std::atomic<std::int64_t> growth_left;  ///< bytes that the threads' tables may still grow by, in total
};

extern Session session;

struct ThreadLink {
  std::uint64_t epoch;
  ThreadState* state;
};
// One pair of words of static thread storage: works in a preloaded library and in one loaded later.
extern thread_local constinit ThreadLink thread_link __attribute__((tls_model("initial-exec")));

/// Whether an event makes a process that is not recorded yet start its recording.
enum class Start : bool { no, yes };

/// Slow path of current_thread(). Null if recording is off. Keeps errno.
ThreadState* enter_thread(Start start) noexcept;

/// The calling thread's state if recording is on, else null.
inline ThreadState* current_thread(Start start) noexcept {
  if (thread_link.epoch == session.gate->epoch.load(std::memory_order_relaxed)) [[likely]]
    return thread_link.state;
  return session.paused.load(std::memory_order_relaxed) ? nullptr : enter_thread(start);
}

/// The state of a thread that sends definitions outside events: also while recording is paused, if the thread has
/// recorded before. Null if recording is off. Starts no recording.
ThreadState* defining_thread() noexcept;

/// Counts an event that found no room, and ends the recording if the recorder is gone.
void event_dropped(ThreadState* thread) noexcept;

/// Takes settings from an environment: "NAME=value", the last one null. Called when the library is loaded.
void configure_session(const char* const* environment) noexcept;

/// Connects to the recorder named by the settings. False if this process is being recorded already, or cannot be.
bool start_session(const char* const* settings) noexcept;

/// Ends the recording of this process, which may start another one. Waits until no thread is in the middle of an event,
/// at most a second, and then marks the recording as ended for the recorder. False if there was none.
bool end_session() noexcept;

/// Whether this process is being recorded, or will be from its next event on; also while it is paused.
[[nodiscard]] bool session_is_on() noexcept;

/// Switches recording on and off for the whole process. While off, an event costs a few instructions.
void pause_session() noexcept;
void resume_session() noexcept;

}  // namespace tidemark::process
