// Writes the recording that tests/compat keeps for each release: every kind of definition and event, with the awkward
// cases. Run once a release, by hand; the file is committed and never changes afterwards.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/event_codec.h"
#include "trace/recording_state.h"
#include "trace/running_totals.h"
#include "trace/writer.h"

namespace {

using namespace tidemark;

ProcessInfo process_info() {
  ProcessInfo process;
  process.pid = 4242;
  process.parent_pid = 4200;
  process.rank = 1;
  process.world_size = 2;
  process.hostname = "gpu-node-1";
  process.command_line = "python train.py --note 'größer \"x\"'";
  process.python_version = "3.11.7";
  process.stack_mode = "both";
  process.recorder_version = "0.1.0";
  process.start_wall_ns = 1'795'168'301'328'464'000;
  return process;
}

class Maker {
 public:
  explicit Maker(TraceWriter& writer) : writer_(writer) {}

  void write() {
    define();
    early_events();
    mark(Mark::Kind::range_begin, "epoch", trainer_);
    (void)writer_.flush();
    training_loop();
    closing_events();
  }

 private:
  void define() {
    const StringId file = writer_.string("train.py");
    const auto line = [&](const char* function, std::uint32_t number) {
      return writer_.location(
          {.file = file, .function = writer_.string(function), .line = number, .module = {}, .offset = 0});
    };
    const ModuleId module = writer_.module({writer_.string("/usr/lib/libc10.so"), "8d9fe2a1", 0x7f12'3456'0000});
    main_ = writer_.stack({}, line("main", 120));
    forward_ = writer_.stack(main_, line("Block.forward", 48));
    native_ = writer_.stack(
        forward_,
        writer_.location(
            {.kind = Location::Kind::native, .file = {}, .function = {}, .module = module, .offset = 0x1abcd}));
    nameless_ = writer_.stack(
        {},
        writer_.location(
            {.kind = Location::Kind::native, .file = {}, .function = {}, .module = {}, .offset = 0x7fff'0000'1234}));
    trainer_ = writer_.thread({4242, "python"});
    loader_ = writer_.thread({4300, "pt_data_worker"});
  }

  Event at(std::uint64_t step, EventKind kind, ThreadId thread) {
    Event event;
    time_ += step;
    event.time_ns = time_;
    event.kind = kind;
    event.thread = thread;
    return event;
  }
  void cpu(EventKind kind, std::uint64_t address, std::uint64_t size = 0, StackId stack = {}) {
    Event event = at(900, kind, loader_);
    event.address = address;
    event.size = size;
    event.stack = stack;
    (void)writer_.event(event);
  }
  void gpu(EventKind kind, std::int8_t index, std::uint64_t address, std::uint64_t size, StackId stack = {}) {
    Event event = at(1700, kind, trainer_);
    event.device = {DeviceType::cuda, index};
    event.address = kind == EventKind::out_of_memory ? 0 : address;
    event.size = size;
    event.stack = stack;
    event.has_totals = true;
    if (kind == EventKind::allocate) allocated_ += size;
    if (kind == EventKind::free) allocated_ -= size;
    event.total_allocated = allocated_;
    event.total_reserved = reserved_;
    (void)writer_.event(event);
  }

  void early_events() {
    cpu(EventKind::free, 0x5555'0000);  // allocated before the recording began
    cpu(EventKind::allocate, 0x5555'1000, 4096, main_);
    cpu(EventKind::allocate, 0x5555'1000, 8192, nameless_);  // its free was missed
    cpu(EventKind::allocate, 0x7000'0000'0000, 100);         // the same address as on the GPU below
    reserved_ = 2 << 20;
    gpu(EventKind::allocate, 0, 0x7000'0000'0000, 1 << 20, native_);
    time_ -= 5000;  // the clock steps back
    gpu(EventKind::allocate, 0, 0x7000'0010'0000, 512, forward_);
  }

  void mark(Mark::Kind kind, const char* name, ThreadId thread) {
    writer_.mark({kind, time_, writer_.string(name), thread});
  }

  void training_loop() {
    for (int step = 0; step < 6; ++step) {
      for (std::uint64_t n = 0; n < 8; ++n) gpu(EventKind::allocate, 0, 0x7100'0000'0000 + n * 65536, 65536, native_);
      for (std::uint64_t n = 8; n-- > 0;) gpu(EventKind::free, 0, 0x7100'0000'0000 + n * 65536, 65536);
    }
  }

  void closing_events() {
    (void)writer_.event(at(1, EventKind::pause, {}));
    (void)writer_.event(at(1'000'000'000, EventKind::resume, trainer_));
    mark(Mark::Kind::range_end, "epoch", trainer_);
    mark(Mark::Kind::point, "evaluation", {});
    gpu(EventKind::out_of_memory, 1, 0, std::uint64_t{80} << 30, main_);
    ProcessInfo process = process_info();
    process.torch_version = "2.11.0+cu130";
    writer_.process(process);
    writer_.loss({Loss::Kind::ring_full, 12, "thread 4300"});
    writer_.loss({Loss::Kind::ring_full, 30, "thread 4300"});
    writer_.loss({Loss::Kind::stack_truncated, 1, ""});
    (void)writer_.finish({time_ + 10, true});
  }

  TraceWriter& writer_;
  StackId main_, forward_, native_, nameless_;
  ThreadId trainer_, loader_;
  std::uint64_t time_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
};

/// Samples of every kind, with known and unknown values, in two frames around an event.
void write_samples(TraceWriter& writer) {
  writer.sample(SampledDevice{"nvidia", 3, {}, 0, "NVIDIA H100 80GB HBM3", "GPU-5f1d", "0000:65:00.0", 85'520'809'984});
  writer.sample(SampledDevice{"nvidia", 1, 2, {}, "MIG 1g.10gb", "MIG-77", "", {}});
  writer.sample(DeviceSample{1'000, {0}, 2'147'483'648, 577'765'376, 37, 41, 71'500});
  writer.sample(DeviceSample{1'100, {1}, 0, {}, 0, -5, {}});
  Event event;
  event.time_ns = 2'000;
  event.address = 0x1000;
  event.size = 512;
  (void)writer.event(event);
  (void)writer.flush();
  writer.sample(DeviceProcessesSample{1'000'000,
                                      {0},
                                      {{4242, ProcessKind::recorded, 524'288'000, "python train.py"},
                                       {4300, ProcessKind::job, {}, "python -m größer"},
                                       {17, ProcessKind::other, 0, "Xorg"},
                                       {18, ProcessKind::ended, 5, ""},
                                       {-1, ProcessKind::other_namespace, 1'048'576, ""}}});
  writer.sample(DeviceProcessesSample{1'000'001, {1}, {}});
  writer.sample(HostSample{1'000'002, 1, 2, 3, 4, 5, 6, 7, 8});
  writer.sample(HostSample{999'999, {}, {}, {}, {}, {}, {}, {}, {}});
  event.device = {DeviceType::cuda_driver, 0};
  event.time_ns = 3'000;
  event.size = std::uint64_t{64} << 20;
  (void)writer.event(event);
  writer.sample(SlowDriverCall{3'000, 900});
  writer.sample(SlowDriverCall{0, 0});
  writer.loss({Loss::Kind::device_lost, 1, "GPU 3 (GPU-5f1d)"});
  (void)writer.finish({3'000, true});
}

/// Segments released without a block, on two devices; page-locked memory of the host.
void write_release(TraceWriter& writer) {
  const ThreadId thread = writer.thread({4242, "python"});
  const auto make = [&](std::uint64_t time_ns, EventKind kind, Device device, std::uint64_t address,
                        std::uint64_t size) {
    Event event;
    event.time_ns = time_ns;
    event.kind = kind;
    event.device = device;
    event.address = address;
    event.size = size;
    event.thread = thread;
    return event;
  };
  const auto add = [&](Event event, std::uint64_t allocated, std::uint64_t reserved) {
    event.has_totals = true;
    event.total_allocated = allocated;
    event.total_reserved = reserved;
    (void)writer.event(event);
  };
  constexpr Device kFirst = {DeviceType::cuda, 0};
  constexpr Device kSecond = {DeviceType::cuda, 1};
  constexpr std::uint64_t kMiB = 1 << 20;
  add(make(1'000, EventKind::allocate, kFirst, 0x7000'0000'0000, kMiB), kMiB, 2 * kMiB);
  add(make(2'000, EventKind::allocate, kSecond, 0x7100'0000'0000, 30 * kMiB), 30 * kMiB, 30 * kMiB);
  (void)writer.event(make(2'500, EventKind::allocate, {DeviceType::cuda_host, 0}, 0x7f00'0000'0000, 2 * kMiB));
  add(make(3'000, EventKind::free, kSecond, 0x7100'0000'0000, 0), 0, 30 * kMiB);
  add(make(4'000, EventKind::release, kSecond, 0, 0), 0, 0);
  (void)writer.event(make(4'500, EventKind::free, {DeviceType::cuda_host, 0}, 0x7f00'0000'0000, 0));
  add(make(5'000, EventKind::free, kFirst, 0x7000'0000'0000, 0), 0, 2 * kMiB);
  add(make(6'000, EventKind::release, kFirst, 0, 0), 0, 0);
  add(make(7'000, EventKind::free, kFirst, 0x7777'0000'0000, 0), 0, 0);  // of a block allocated before
  (void)writer.finish({7'000, true});
}

/// The host's memory by part, and a process killed for lack of it; known and unknown values.
void write_host(TraceWriter& writer) {
  HostSample usage{1'000, 10, 9, 3, 30, 20, 40, 50, 1};
  std::uint64_t bytes = 100;
  for (auto* field : {&usage.anon_bytes, &usage.file_bytes, &usage.shmem_bytes, &usage.swap_bytes, &usage.locked_bytes,
                      &usage.pinned_bytes, &usage.job_anon_bytes, &usage.job_file_bytes, &usage.job_shmem_bytes,
                      &usage.job_swap_bytes}) {
    *field = bytes++;
  }
  writer.sample(usage);
  HostPartsSample parts;
  parts.time_ns = 2'000;
  parts.cgroup = {8'000, 9'000, 1'000, 2'000, 3'000, 400, 50, {}};
  parts.cgroup_events = {0, 1, 2, 3, true};
  parts.machine = {16'000, 32'000, 4'000, 5'000, 3'100, 600, {}, 0};
  parts.machine_available_bytes = 12'345;
  parts.processes.push_back(
      {4242, 1, ProcessRole::rank, true, 3, 8, {700, 300, 200, 200, 0, 5, {}}, 600, 290, "python train.py"});
  parts.processes.push_back({4300, 4242, ProcessRole::data_worker, false, 0, 2, {}, {}, {}, "python größer.py"});
  parts.other_processes = 2;
  parts.other_pages.rss_bytes = 77;
  writer.sample(parts);
  parts = {};
  parts.cgroup_events.under_oom = false;
  writer.sample(parts);
  KilledProcess killed;
  killed.time_ns = 3'000;
  killed.process = {4300, 4242,    ProcessRole::data_worker, false, 0, 2, {600, 500, 60, 40, {}, {}, {}}, {},
                    {},   "python"};
  killed.evidence = KillEvidence::exit_signal;
  killed.scope = KillScope::cgroup;
  killed.cgroup_usage_bytes = 8'999;
  killed.cgroup_limit_bytes = 9'000;
  writer.sample(killed);
  writer.sample(KilledProcess{});
  (void)writer.finish({3'000, true});
}

/// A totals and a state frame, which a writer makes after some thousand events, here after a few: frames by hand.
class Checkpointed {
 public:
  bool write(const char* path) {
    append_file_header(file_);
    definitions_.process(process_info());
    const StringId name = definitions_.string("train.py");
    Location line;
    line.file = line.function = name;
    line.line = 7;
    const StackId stack = definitions_.stack({}, definitions_.location(line));
    const ThreadId thread = definitions_.thread({4242, "python"});
    const AutogradNodeId node = definitions_.autograd_node({name, thread});
    definitions_.append_frames(frames_, file_);
    allocate({}, 0x5555'1000, 4096, {}, thread);
    allocate(kGpu, kFirst, 1 << 20, stack, {}, 7);
    allocate(kGpu, kSecond, 512, {}, {}, 8, node, 3);
    allocate(kGpu, kThird, 65'536, stack, thread, 8, node, 5);
    free(kSecond, 512);
    events_.append_frame(frames_, file_);
    append_checkpoint();
    allocate(kGpu, kSecond, 512);  // as expected
    free(kFirst, 1 << 20);
    allocate(kGpu, kFirst, 4096, stack, {}, 9);  // a recent one
    free(kThird, 65'536);
    events_.append_frame(frames_, file_);
    definitions_.end({time_ns_, true});
    definitions_.append_frames(frames_, file_);
    std::ofstream out(path, std::ios::binary);
    return out.write(reinterpret_cast<const char*>(file_.data()), static_cast<std::streamsize>(file_.size())).good();
  }

 private:
  static constexpr Device kGpu = {DeviceType::cuda, 1};
  static constexpr std::uint64_t kFirst = 0x7000'0000'0000;
  static constexpr std::uint64_t kSecond = 0x7000'0010'0000;
  static constexpr std::uint64_t kThird = 0x7000'0020'0000;

  void add(EventKind kind, Device device, const RecordingState::Block& block) {
    Event event;
    event.kind = kind;
    event.device = device;
    event.time_ns = block.time_ns;
    event.address = block.address;
    event.size = block.size;
    event.stack = block.stack;
    event.thread = block.thread;
    event.sequence = block.sequence;
    event.node = block.node;
    event.node_sequence = block.node_sequence;
    event.has_totals = device == kGpu;
    if (event.has_totals) {
      event.total_allocated = allocated_;
      event.total_reserved = kReserved;
    }
    events_.add(event);
  }
  void allocate(Device device, std::uint64_t address, std::uint64_t size, StackId stack = {}, ThreadId thread = {},
                std::uint64_t sequence = 0, AutogradNodeId node = {}, std::uint64_t node_sequence = 0) {
    const std::uint32_t index = device == kGpu ? 1 : 0;
    if (index == 1) allocated_ += size;
    blocks_.push_back({state_.allocate(address, size, index), index, address, size, time_ns_ += 1700, stack, thread,
                       sequence, node, node_sequence});
    add(EventKind::allocate, device, blocks_.back());
  }
  void free(std::uint64_t address, std::uint64_t size) {
    allocated_ -= size;
    const auto freed = std::ranges::find(blocks_, address, &RecordingState::Block::address);
    freed->time_ns = time_ns_ += 1700;
    add(EventKind::free, kGpu, *freed);
    state_.free(freed->slot);
    blocks_.erase(freed);
  }
  void append_checkpoint() {
    const std::uint64_t peak = allocated_ + 512;
    const RunningTotals totals = {
        5, time_ns_, {{{}, 4096, 4096}, {kGpu, allocated_, peak, true, allocated_, peak, kReserved, kReserved}}};
    frames_.append_plain(format::FrameType::totals, encode_totals(totals), file_);
    RecordingState state;
    state.time_ns = time_ns_;
    state.device = 1;
    state.freed_slot = state_.freed_slot;
    state.allocated_at = state_.allocated_at;
    state.sequence = blocks_.back().sequence;
    state.node_sequence = blocks_.back().node_sequence;
    state.devices = {{{}, false, 0, 0}, {kGpu, true, allocated_, kReserved}};
    state.blocks = blocks_;
    state.expected = state_.expected_addresses();
    state.recent = state_.recent_addresses();
    append_state_frame(state, frames_, file_);
  }

  static constexpr std::uint64_t kReserved = 2 << 20;
  std::vector<std::byte> file_;
  FrameEncoder frames_;
  DefinitionEncoder definitions_;
  EventEncoder events_;
  EventState state_;
  std::vector<RecordingState::Block> blocks_;
  std::uint64_t time_ns_ = 0;
  std::uint64_t allocated_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count == 3 ? arguments[2] : "";
  if (count < 2 || count > 3 ||
      (count == 3 && what != "samples" && what != "host" && what != "checkpoint" && what != "release")) {
    std::fprintf(stderr, "usage: make_recording NEW_FILE [samples|host|checkpoint|release]\n");
    return 2;
  }
  if (what == "checkpoint") return Checkpointed().write(arguments[1]) ? 0 : 2;
  auto sink = open_file_sink(arguments[1], false);
  if (!sink.ok()) {
    std::fprintf(stderr, "%s\n", sink.error().message.c_str());
    return 2;
  }
  auto writer = TraceWriter::create(std::move(sink).value(), process_info());
  if (!writer.ok()) {
    std::fprintf(stderr, "%s\n", writer.error().message.c_str());
    return 2;
  }
  if (what == "samples") {
    write_samples(**writer);
  } else if (what == "host") {
    write_host(**writer);
  } else if (what == "release") {
    write_release(**writer);
  } else {
    Maker(**writer).write();
  }
  return 0;
}
