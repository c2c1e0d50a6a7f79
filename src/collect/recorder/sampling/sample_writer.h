// Converts readings of the machine to the samples of one process's recording.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/recorder/lanes/lane_reader.h"
#include "collect/recorder/sampling/readings.h"
#include "trace/recording_writer.h"

namespace tidemark {

/// One thread. `writer` and `clock` must outlive it.
class SampleWriter {
 public:
  /// For the process `pid`, with a recording that begins at `start_ticks`.
  SampleWriter(RecordingWriter& writer, const TickClock& clock, std::int64_t pid, std::uint64_t start_ticks)
      : writer_(writer), clock_(clock), pid_(pid), start_ticks_(start_ticks) {}

  /// DevicesFound comes first. Readings from before the recording began, or of devices that the process does not see,
  /// are ignored.
  void add(const Reading& reading);

 private:
  void write(std::uint64_t ticks, const DevicesFound& found);
  void write(std::uint64_t ticks, DeviceSample sample);
  void write(std::uint64_t ticks, DeviceProcessesSample sample);
  void write(std::uint64_t ticks, const DeviceLost& lost);
  void write(std::uint64_t ticks, const HostReading& host);
  void write(std::uint64_t ticks, HostPartsSample sample);
  void write(std::uint64_t ticks, KilledProcess killed);

  /// The id in the recording for a position in DevicesFound; std::nullopt if the process does not see the device.
  [[nodiscard]] std::optional<SampledDeviceId> id_of(SampledDeviceId position) const;
  [[nodiscard]] std::uint64_t time_ns(std::uint64_t ticks) const { return clock_.between_ns(start_ticks_, ticks); }

  RecordingWriter& writer_;
  const TickClock& clock_;
  std::int64_t pid_;
  std::uint64_t start_ticks_;
  std::vector<std::optional<SampledDeviceId>> ids_;  // by position in DevicesFound
};

}  // namespace tidemark
