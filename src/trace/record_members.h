// The members of records in storage order: the single definition for writing and reading, of frames
// (trace/record_fields.h) and of a monitor's state (monitor/state_codec.cpp). Together with the types of the members it
// is the format: docs/format.md. Add a new member at the end of its list; in a frame, after kAddedLater; in a state,
// with a new kVersion there.
#pragma once

#include <tuple>
#include <type_traits>

#include "trace/definitions.h"
#include "trace/recording_state.h"
#include "trace/running_totals.h"
#include "trace/sample.h"

namespace tidemark {

/// Numbers of an enumeration in files. Unknown numbers, which later versions added, are read as the least specific
/// value.
template <typename Enum>
struct EnumBounds {
  Enum last;
  Enum otherwise;
};

struct RecordMembers {
  // In lists, beside pointers to members. Functions make them, since clang 14 deduces no arguments of aggregates.

  /// Records of earlier versions may end here.
  struct AddedLater {};
  static constexpr AddedLater kAddedLater{};
  /// The following members are present only if this member is true.
  template <typename Member>
  struct OnlyWith {
    Member member;
  };
  /// An optional for which `kNone` and smaller values mean none.
  template <auto kNone, typename Member>
  struct NoneIs {
    Member member;
  };
  /// An optional number or text at a record's end: no bytes if there is none.
  template <typename Member>
  struct Last {
    Member member;
  };
  /// A time of the machine's clock: mostly ascending.
  template <typename Member>
  struct Time {
    Member member;
  };
  template <typename Member>
  static constexpr OnlyWith<Member> only_with(Member member) {
    return {member};
  }
  template <auto kNone, typename Member>
  static constexpr NoneIs<kNone, Member> none_is(Member member) {
    return {member};
  }
  template <typename Member>
  static constexpr Last<Member> last(Member member) {
    return {member};
  }
  template <typename Member>
  static constexpr Time<Member> time(Member member) {
    return {member};
  }

  // Definitions.
  static constexpr auto of(const ProcessInfo*) {
    using T = ProcessInfo;
    return std::tuple(none_is<-1>(&T::pid), none_is<-1>(&T::parent_pid), none_is<-1>(&T::rank),
                      none_is<-1>(&T::local_rank), none_is<-1>(&T::world_size), none_is<0U>(&T::start_wall_ns),
                      &T::hostname, &T::command_line, &T::python_version, &T::torch_version, &T::stack_mode,
                      &T::recorder_version, last(&T::allocator_settings));
  }
  static constexpr auto of(const ThreadInfo*) {
    using T = ThreadInfo;
    return std::tuple(none_is<-1>(&T::tid), &T::name);
  }
  static constexpr auto of(const ModuleInfo*) {
    using T = ModuleInfo;
    return std::tuple(&T::path, &T::load_address, &T::build_id);
  }
  static constexpr auto of(const Loss*) {
    using T = Loss;
    return std::tuple(&T::kind, &T::count, &T::text, last(&T::limit));
  }
  static constexpr auto of(const Mark*) {
    using T = Mark;
    return std::tuple(&T::kind, &T::time_ns, &T::name, &T::thread);
  }
  static constexpr auto of(const NnModule*) { return std::tuple(&NnModule::address); }
  static constexpr auto of(const NnModuleName*) {
    using T = NnModuleName;
    return std::tuple(&T::module, &T::root, &T::path, &T::type);
  }
  static constexpr auto of(const Device*) { return std::tuple(&Device::type, &Device::index); }
  static constexpr auto of(const ModelTensor*) {
    using T = ModelTensor;
    return std::tuple(&T::role, &T::device, &T::requires_grad, &T::time_ns, &T::address, &T::storage_bytes, &T::bytes,
                      &T::module, &T::name, &T::state, &T::dtype, &T::shape);
  }
  static constexpr auto of(const AutogradNode*) {
    using T = AutogradNode;
    return std::tuple(&T::type, &T::forward_thread);
  }
  static constexpr auto of(const EndInfo*) {
    using T = EndInfo;
    return std::tuple(&T::time_ns, &T::process_exited);
  }

  // Samples.
  static constexpr auto of(const SampledDevice*) {
    using T = SampledDevice;
    return std::tuple(&T::index, &T::instance_of, &T::cuda_index, &T::total_bytes, &T::vendor, &T::name, &T::uuid,
                      &T::bus_id);
  }
  static constexpr auto of(const DeviceSample*) {
    using T = DeviceSample;
    return std::tuple(&T::time_ns, &T::device, &T::used_bytes, &T::driver_reserved_bytes, &T::utilization_percent,
                      &T::temperature_celsius, &T::power_milliwatts);
  }
  static constexpr auto of(const SampledProcess*) {
    using T = SampledProcess;
    return std::tuple(&T::pid, &T::kind, &T::bytes, &T::name);
  }
  static constexpr auto of(const DeviceProcessesSample*) {
    using T = DeviceProcessesSample;
    return std::tuple(&T::time_ns, &T::device, &T::processes);
  }
  static constexpr auto of(const HostSample*) {
    using T = HostSample;
    return std::tuple(&T::time_ns, &T::rss_bytes, &T::pss_bytes, &T::job_processes, &T::job_rss_bytes,
                      &T::job_pss_bytes, &T::cgroup_usage_bytes, &T::cgroup_limit_bytes, &T::cgroup_oom_kills,
                      kAddedLater, &T::anon_bytes, &T::file_bytes, &T::shmem_bytes, &T::swap_bytes, &T::locked_bytes,
                      &T::pinned_bytes, &T::job_anon_bytes, &T::job_file_bytes, &T::job_shmem_bytes, &T::job_swap_bytes,
                      &T::machine_available_bytes);
  }
  static constexpr auto of(const SlowDriverCall*) {
    using T = SlowDriverCall;
    return std::tuple(&T::time_ns, &T::duration_ns);
  }
  static constexpr auto of(const ProcessPages*) {
    using T = ProcessPages;
    return std::tuple(&T::rss_bytes, &T::anon_bytes, &T::file_bytes, &T::shmem_bytes, &T::swap_bytes, &T::locked_bytes,
                      &T::pinned_bytes);
  }
  static constexpr auto of(const HostProcess*) {
    using T = HostProcess;
    return std::tuple(&T::pid, &T::parent_pid, &T::role, &T::recorded, &T::number, &T::count, &T::pages, &T::pss_bytes,
                      &T::private_bytes, &T::name);
  }
  static constexpr auto of(const MemoryParts*) {
    using T = MemoryParts;
    return std::tuple(&T::used_bytes, &T::limit_bytes, &T::anon_bytes, &T::cache_bytes, &T::shmem_bytes,
                      &T::kernel_bytes, &T::socket_bytes, &T::swap_bytes);
  }
  static constexpr auto of(const MemoryEvents*) {
    using T = MemoryEvents;
    return std::tuple(&T::low, &T::high, &T::max, &T::oom, &T::under_oom);
  }
  static constexpr auto of(const HostPartsSample*) {
    using T = HostPartsSample;
    return std::tuple(&T::time_ns, &T::cgroup, &T::cgroup_events, &T::machine, &T::machine_available_bytes,
                      &T::machine_oom_kills, &T::processes, &T::other_processes, &T::other_pages);
  }
  static constexpr auto of(const KilledProcess*) {
    using T = KilledProcess;
    return std::tuple(time(&T::time_ns), &T::process, &T::evidence, &T::scope, &T::cgroup_usage_bytes,
                      &T::cgroup_limit_bytes);
  }

  // Totals frames, and the head of state frames.
  static constexpr auto of(const DeviceRunningTotals*) {
    using T = DeviceRunningTotals;
    return std::tuple(&T::device, &T::has_totals, &T::live, &T::peak_live, only_with(&T::has_totals), &T::allocated,
                      &T::peak_allocated, &T::reserved, &T::peak_reserved);
  }
  static constexpr auto of(const RunningTotals*) {
    using T = RunningTotals;
    return std::tuple(&T::events, &T::time_ns, &T::devices);
  }
  static constexpr auto of(const RecordingState::OnDevice*) {
    using T = RecordingState::OnDevice;
    return std::tuple(&T::device, &T::has_totals, &T::allocated, &T::reserved);
  }
  static constexpr auto of(const RecordingState*) {
    using T = RecordingState;
    return std::tuple(&T::paused, &T::time_ns, &T::thread_code, &T::device, &T::freed_slot, &T::allocated_at,
                      &T::sequence, &T::node_sequence, &T::devices);
  }

  /// In frames these are preceded by their length, so that later versions can add members at their end.
  static constexpr bool has_length(const HostProcess*) { return true; }
  static constexpr bool has_length(const DeviceRunningTotals*) { return true; }
  static constexpr bool has_length(const void*) { return false; }

  static constexpr EnumBounds<ProcessKind> bounds(std::type_identity<ProcessKind>) {
    return {ProcessKind::other_namespace, ProcessKind::other};
  }
  static constexpr EnumBounds<ProcessRole> bounds(std::type_identity<ProcessRole>) {
    return {ProcessRole::child, ProcessRole::other};
  }
  static constexpr EnumBounds<KillEvidence> bounds(std::type_identity<KillEvidence>) {
    return {KillEvidence::vanished, KillEvidence::vanished};
  }
  static constexpr EnumBounds<KillScope> bounds(std::type_identity<KillScope>) {
    return {KillScope::machine, KillScope::unknown};
  }
  static constexpr EnumBounds<Mark::Kind> bounds(std::type_identity<Mark::Kind>) {
    return {Mark::Kind::range_end, Mark::Kind::point};
  }
  static constexpr EnumBounds<CompiledGraph> bounds(std::type_identity<CompiledGraph>) {
    return {CompiledGraph::unknown, CompiledGraph::unknown};
  }
  static constexpr EnumBounds<Loss::Kind> bounds(std::type_identity<Loss::Kind>) {
    return {Loss::Kind{kStoredLossCount - 1}, Loss::Kind::unknown_loss};
  }
  // Any value.
  static constexpr EnumBounds<ModelTensor::Role> bounds(std::type_identity<ModelTensor::Role>) {
    return {ModelTensor::Role{255}, ModelTensor::Role::parameter};
  }
  static constexpr EnumBounds<DeviceType> bounds(std::type_identity<DeviceType>) {
    return {DeviceType{127}, DeviceType::cpu};
  }
};

template <typename T, typename Members = RecordMembers>
concept Described = requires {
  Members::of(static_cast<const T*>(nullptr));
};

}  // namespace tidemark
