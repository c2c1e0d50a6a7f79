// Memory of a training loop over time: a simple model with everything that makes memory go up and down without a leak.
#pragma once

#include <cstdint>
#include <functional>

#include "labelled_run.h"
#include "random.h"

namespace tidemark::detectors {

/// The sampled value.
enum class View : std::uint8_t {
  allocated,  ///< live blocks: goes up and down within each step
  reserved,   ///< held by the allocator: goes up, seldom down
  device,     ///< reported by the driver: reserved, the context, and other processes
};

/// Sizes are shares of the limit, times are seconds.
struct Training {
  std::uint64_t limit_bytes = 0;
  double duration = 600;
  double samples_per_second = 1;
  View view = View::allocated;
  bool steps_known = false;
  bool peaks_known = false;   ///< for allocated memory: a recorder sees peaks between samples
  double attached_after = 0;  ///< earlier samples are missing
  double loading = 10;        ///< until the first step; the weights are loaded at a constant rate
  double seconds_per_step = 1;
  double step_jitter = 0.1;  ///< deviation of a step's time, as a share of it
  double base = 0.3;         ///< weights, gradients, states of the optimizer
  double activations = 0.3;  ///< at the end of a forward pass of the usual length
  double length_spread = 0;  ///< of the activations: a batch takes 1 - spread to 1 of them, long ones are rare
  int micro_batches = 1;     ///< in a step
  int evaluate_every = 0;    ///< steps; 0: never
  int evaluation_steps = 0;
  double evaluation = 1;       ///< activations in evaluation, as a factor of those in training
  bool empties_cache = false;  ///< after evaluation
  double warm_up = 0;          ///< added to the base, less in each step
  double warm_up_time = 30;
  double garbage = 0;        ///< of a step, freed only by the collector
  int collect_every = 100;   ///< steps, give or take a fifth
  double noise = 0;          ///< of other processes, deviation
  double fragmentation = 0;  ///< reserved memory that the allocator cannot use, as a share of variable batches
  int restarts_after = 0;    ///< steps after which the program starts again; 0: never
  double gap_at = 0;         ///< no samples for a minute from here on; 0: never
  std::function<double(int step, double seconds)> grows;       ///< permanent growth left by a step
  std::function<double(int step, double seconds)> batch_size;  ///< times the activations; empty: 1
  double grows_from = 0;
};

/// Ends if the limit is reached. `random`: for all random properties.
[[nodiscard]] LabelledRun simulate(const Training& training, Random& random);

}  // namespace tidemark::detectors
