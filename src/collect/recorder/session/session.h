// The recording of one process, on the recorder's side: drains its lanes into a writer, in the order of time.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "collect/recorder/lanes/allocator_segments.h"
#include "collect/recorder/lanes/driver_memory.h"
#include "collect/recorder/lanes/lane_definitions.h"
#include "collect/recorder/lanes/lane_reader.h"
#include "collect/recorder/lanes/nn_modules.h"
#include "collect/recorder/sampling/sample_writer.h"
#include "trace/recording_writer.h"
#include "trace/window_writer.h"

namespace tidemark {

/// One thread at a time. Never blocks on the recorded process.
class Session {
 public:
  struct Limits {
    std::uint64_t max_file_bytes = 0;  ///< never exceeded, from some KiB on; 0 = no limit
    WindowWriter* window = nullptr;    ///< the writer, if it keeps only the most recent part
  };

  Session(std::unique_ptr<SharedMemory> memory, const TickClock& clock, std::unique_ptr<RecordingWriter> writer,
          ProcessInfo process, Limits limits);
  /// Tells the process to stop.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Reads the available records and writes all events that no earlier one can follow any more. Returns how many bytes
  /// of records were read. An error is a write error: the session has then told the process to stop.
  /// `recorder_was_stopped`: the recorder did not run for long before; events dropped since the last call are due to
  /// that.
  Result<std::uint64_t> drain(bool recorder_was_stopped = false);

  /// How long drain() buffers events that it could write: a second, and less if a reader follows the file. Smaller
  /// frames compress worse.
  void flush_after(std::chrono::nanoseconds time) { flush_ns_ = static_cast<std::uint64_t>(time.count()); }

  /// Takes readings of the machine, DevicesFound first; drain() writes them.
  void add(const Reading& reading);

  /// After drain() has thrown std::bad_alloc: frees memory and ends the recording there. Returns the error to report.
  Error out_of_memory();
  /// Adds to the recording's losses.
  void add(const Loss& loss);

  /// Reads everything and ends the recording. `exited`: the process is gone or has ended its recording (else it is told
  /// to stop).
  Result<void> finish(bool exited);

  /// For a window: ends the segment with the events so far. The session goes on.
  Result<void> cut();

  /// The process has ended its recording, and goes on.
  [[nodiscard]] bool ended_by_process() const {
    return memory_->get()->control.ended.load(std::memory_order_acquire) != 0;
  }

  /// Signals the process that a monitor's request waits for it.
  void announce_question();

  /// Whether the process was seen to be a worker of a torch.utils.data.DataLoader.
  [[nodiscard]] bool is_data_worker() const;

  /// The session no longer writes (error, size limit).
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool size_limit_reached() const { return size_limit_reached_; }
  [[nodiscard]] const ProcessInfo& process() const { return process_; }
  /// Time 0 of the recording, in nanoseconds of the recorder's clock.
  [[nodiscard]] std::uint64_t started_ns() const;
  [[nodiscard]] std::uint64_t event_count() const { return event_count_; }
  /// Failed requests for memory.
  [[nodiscard]] std::uint64_t oom_count() const { return oom_count_; }
  [[nodiscard]] std::uint64_t dropped_count() const;
  [[nodiscard]] std::uint64_t bytes_written() const { return writer_->bytes_written(); }

 private:
  struct PendingEvent {
    std::uint64_t ticks;
    Event event;
    std::optional<DriverCallRecord> driver_call = {};  ///< its effect depends on the calls before it
    std::optional<LaneNode> node = {};                 ///< the event's node; its id is set when the event is written
  };
  struct LaneState {
    LaneState(ring::Shared* shared, std::uint32_t lane, NnModules& nn_modules)
        : reader(shared, lane), definitions(nn_modules) {}
    LaneReader reader;
    LaneDefinitions definitions;
    std::deque<PendingEvent> pending;
    std::uint64_t last_ticks = 0;
    bool reported_broken = false;
    // From the latest `autograd` record.
    std::uint64_t sequence = 0;
    std::uint64_t node_sequence = 0;
    std::optional<LaneNode> node;
  };

  /// The result of reading all lanes once.
  struct Round {
    std::uint64_t until = 0;  ///< ticks; earlier events have been read
    std::uint64_t bytes = 0;
    bool more = false;  ///< a lane may have more
  };
  static constexpr std::uint64_t kMaxTakenBytes = std::uint64_t{1} << 20;  ///< from a lane in one pass
  Round take_round(std::uint64_t now);

  // session_records.cpp
  /// Bytes; fewer than kMaxTakenBytes if the lane is empty now.
  std::uint64_t take(LaneState& lane);
  void take_record(LaneState& lane, const RingRecord& record);
  void take_driver_call(LaneState& lane, const RingRecord& record);
  void take_autograd(LaneState& lane, const RingRecord& record);
  /// `ticks`, or the lane's last ticks if they lie in the future.
  std::uint64_t clamp_timestamp(std::uint64_t ticks, LaneState& lane);
  void set_process_facts(const ProcessFacts& facts);
  void write_mark(const LaneMark& mark, LaneState& lane);
  void write_tensors(ModelTensors model, LaneState& lane);
  // session_writing.cpp
  void limit_size();
  Result<void> next_segment(std::uint64_t now_ns);
  void keep_definitions(KeptDefinitions& definitions) const;
  Result<void> write_until(std::uint64_t ticks);
  Result<void> write(const PendingEvent& pending);
  AutogradNodeId autograd_node(const LaneNode& node);
  Result<void> write(const Event& event);
  Result<void> check_size();
  void stop();
  void stop_after_error(bool exited);
  // session.cpp
  void add_losses();
  [[nodiscard]] std::uint64_t dropped_by_lanes() const;

  std::unique_ptr<SharedMemory> memory_;
  const TickClock& clock_;
  std::unique_ptr<RecordingWriter> writer_;
  ProcessInfo process_;
  Limits limits_;
  SampleWriter samples_;
  DriverMemory driver_memory_;
  std::vector<Event> driver_events_;  ///< of one call
  AllocatorSegments segments_;
  NnModules nn_modules_;
  std::unordered_map<std::uint64_t, ThreadId> autograd_threads_;  ///< by autograd's own numbers
  std::vector<std::unique_ptr<LaneState>> lanes_;  ///< the first ones of the process; grows as lanes come into use
  struct {
    std::uint64_t definitions = 0;
    std::uint64_t records = 0;
    std::uint64_t times = 0;
  } invalid_;                        ///< records in the rings
  std::uint64_t latest_ticks_ = 0;   ///< an upper bound of the times seen so far
  std::uint64_t written_ticks_ = 0;  ///< of the latest event in the file
  std::uint64_t last_flush_ticks_ = 0;
  std::uint64_t flush_ns_ = 1'000'000'000;
  std::uint64_t last_event_ns_ = 0;
  std::uint64_t event_count_ = 0;
  std::uint64_t oom_count_ = 0;
  std::uint64_t told_until_ns_ = 0;                            ///< at the last drain()
  std::array<std::uint64_t, kStoredLossCount> told_losses_{};  ///< losses that lanes count
  std::uint64_t dropped_before_ = 0;                           ///< by the lanes, at the end of the last drain()
  std::uint64_t dropped_while_stopped_ = 0;                    ///< part of them lost while the recorder did not run
  bool unflushed_ = false;
  bool stopped_ = false;
  bool size_limit_reached_ = false;
};

}  // namespace tidemark
