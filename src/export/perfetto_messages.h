// Messages and field numbers of a Perfetto trace, as far as they are written here (github.com/google/perfetto,
// protos/perfetto/trace/trace_packet.proto and track_event/*.proto; the messages have the names they have there).
#pragma once

#include <cstdint>
#include <protozero/types.hpp>

namespace tidemark::perfetto {

enum class Trace : protozero::pbf_tag_type { packet = 1 };
enum class TracePacket : protozero::pbf_tag_type {
  clock_snapshot = 6,
  timestamp = 8,  // ns
  trusted_packet_sequence_id = 10,
  track_event = 11,
  track_descriptor = 60,
};

enum class ClockSnapshot : protozero::pbf_tag_type { clocks = 1 };
enum class Clock : protozero::pbf_tag_type { clock_id = 1, timestamp = 2 };
enum class ClockId : std::uint32_t { realtime = 1, boottime = 6 };  // packets' times are of the latter

enum class TrackDescriptor : protozero::pbf_tag_type {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter = 8,
};
enum class Process : protozero::pbf_tag_type { pid = 1, cmdline = 2, process_name = 6 };  // ProcessDescriptor
enum class Thread : protozero::pbf_tag_type { pid = 1, tid = 2, thread_name = 5 };        // ThreadDescriptor
enum class Counter : protozero::pbf_tag_type { unit = 3 };                                // CounterDescriptor
enum class CounterUnit : std::int32_t { size_bytes = 3 };

enum class TrackEvent : protozero::pbf_tag_type {
  debug_annotations = 4,
  type = 9,
  track_uuid = 11,
  name = 23,
  counter_value = 30,
};
enum class EventType : std::int32_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };
enum class Annotation : protozero::pbf_tag_type { uint_value = 3, string_value = 6, name = 10 };  // DebugAnnotation

}  // namespace tidemark::perfetto
