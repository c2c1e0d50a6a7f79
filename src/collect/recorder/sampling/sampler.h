// Takes samples on a thread of its own: a driver may block for seconds, and the rings must be drained meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "collect/recorder/lanes/lane_reader.h"
#include "collect/recorder/sampling/readings.h"
#include "collect/recorder/sampling/sample_taker.h"

namespace tidemark {

/// Owned and called by one thread.
class Sampler {
 public:
  /// Starts nothing yet. `job`: the process above those of the job.
  Sampler(SampleOptions options, std::int64_t job, const TickClock& clock);
  /// Waits a second for a driver that does not answer, then leaves the thread to the end of this process.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Starts the thread, once. It takes no signals: they are this process's own.
  void start();
  /// What was read since the last call, oldest first.
  [[nodiscard]] std::vector<Reading> collect();

 private:
  struct Shared;  ///< with the thread
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace tidemark
