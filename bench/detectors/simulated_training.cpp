#include "simulated_training.h"

#include <algorithm>
#include <cmath>

namespace tidemark::detectors {
namespace {

constexpr double kForward = 0.4;       // share of a micro-batch's time
constexpr double kGradients = 0.15;    // share of the activations, alive until the optimizer has run
constexpr double kAfterTheEnd = 3600;  // time after the end in which the run may still reach the limit
constexpr double kGap = 60;
constexpr double kSegment = 20.0 * (1 << 20);

// The memory of one step: straight lines between points.
class StepShape {
 public:
  StepShape(double from, double length, double floor, const std::vector<double>& passes, double left) {
    points_.push_back({from, floor});
    const double each = length / static_cast<double>(passes.size());
    double gradients = 0;
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      const double start = from + each * static_cast<double>(pass);
      points_.push_back({start + each * kForward, floor + gradients + passes[pass]});
      gradients = std::max(gradients, kGradients * passes[pass]);
      points_.push_back({start + each * 0.9, floor + gradients});
    }
    points_.push_back({from + length, floor + left});
  }
  [[nodiscard]] double at(double time) const {
    for (std::size_t index = 1; index < points_.size(); ++index) {
      if (time > points_[index].time) continue;
      const Point& left = points_[index - 1];
      const Point& right = points_[index];
      const double share = right.time > left.time ? (time - left.time) / (right.time - left.time) : 1;
      return left.bytes + share * (right.bytes - left.bytes);
    }
    return points_.back().bytes;
  }
  [[nodiscard]] double most_between(double from, double to) const {
    double most = std::max(at(from), at(to));
    for (const Point& point : points_) {
      if (point.time >= from && point.time <= to) most = std::max(most, point.bytes);
    }
    return most;
  }
  [[nodiscard]] double most() const { return most_between(points_.front().time, points_.back().time); }
  [[nodiscard]] double time_of(double bytes) const {
    for (std::size_t index = 1; index < points_.size(); ++index) {
      if (points_[index].bytes < bytes) continue;
      const Point& left = points_[index - 1];
      const double rise = points_[index].bytes - left.bytes;
      return rise > 0 ? left.time + std::max(0.0, (bytes - left.bytes) / rise) * (points_[index].time - left.time)
                      : left.time;
    }
    return points_.back().time;
  }
  [[nodiscard]] double end() const { return points_.back().time; }

 private:
  struct Point {
    double time = 0;
    double bytes = 0;
  };
  std::vector<Point> points_;
};

class Simulation {
 public:
  Simulation(const Training& training, Random& random)
      : t_(training),
        random_(random),
        limit_(static_cast<double>(training.limit_bytes)),
        next_sample_(training.attached_after) {
    context_ = t_.view == View::device ? random_.uniform(0.3e9, 0.9e9) * std::min(1.0, limit_ / 16e9) : 0;
  }

  LabelledRun run() {
    run_.limit_bytes = t_.limit_bytes;
    run_.seconds_per_step = t_.seconds_per_step;
    run_.grows_from = t_.grows_from;
    load();
    while (now_ < t_.duration + kAfterTheEnd && !run_.limit_at) {
      if (now_ > t_.duration && !t_.grows && !t_.batch_size) break;
      step();
    }
    run_.ran_out = run_.limit_at && *run_.limit_at <= t_.duration;
    return std::move(run_);
  }

 private:
  void load() {
    if (t_.loading > 0) take(StepShape(now_, t_.loading, 0, {}, 0), t_.loading);
  }

  double length_of_batch() {
    if (t_.length_spread <= 0) return 1;
    // The longest of a few documents: mostly in the middle, seldom at the end.
    const double place = (random_.uniform() + random_.uniform() + random_.uniform()) / 3;
    return 1 - t_.length_spread + t_.length_spread * place * (random_.chance(0.01) ? 1 / std::max(place, 0.1) : 1);
  }

  void step() {
    ++step_;
    const bool evaluates =
        t_.evaluate_every > 0 && step_ % t_.evaluate_every < t_.evaluation_steps && step_ >= t_.evaluate_every;
    const double length = t_.seconds_per_step * std::max(0.3, 1 + t_.step_jitter * random_.normal());
    const double size = t_.batch_size ? t_.batch_size(step_, now_) : 1;
    std::vector<double> passes;
    for (int micro = 0; micro < (evaluates ? 1 : t_.micro_batches); ++micro) {
      passes.push_back(limit_ * t_.activations * size * length_of_batch() * (evaluates ? t_.evaluation : 1));
    }
    const double warm = t_.warm_up * (1 - std::exp(-std::max(0.0, now_ - t_.loading) / t_.warm_up_time));
    const double floor = limit_ * (t_.base + warm + kept_ + garbage_);
    const double leaves = t_.grows ? t_.grows(step_, now_) : 0;
    garbage_ += t_.garbage;
    take(StepShape(now_, length, floor, passes, limit_ * (leaves + t_.garbage)), length);
    kept_ += leaves;
    if (garbage_ > 0 && --until_collection_ <= 0) {
      garbage_ = 0;
      until_collection_ = static_cast<int>(t_.collect_every * random_.uniform(0.8, 1.2));
    }
    if (t_.fragmentation > 0 && random_.chance(0.2))
      fragmented_ = std::max(fragmented_, random_.uniform() * t_.fragmentation);
    if (t_.empties_cache && evaluates && (step_ + 1) % t_.evaluate_every >= t_.evaluation_steps) reserved_ = 0;
    if (t_.restarts_after > 0 && step_ == t_.restarts_after) {
      kept_ = garbage_ = reserved_ = 0;
      step_ = 0;
      load();
    }
  }

  // The samples of a step. While loading there is no step: a line up to the base.
  void take(StepShape shape, double length) {
    const bool loading = step_ == 0;
    if (loading) shape = StepShape(now_, length, 0, {limit_ * t_.base}, limit_ * t_.base);
    const double end = shape.end();
    const double demand = loading ? limit_ * t_.base : shape.most();
    if (demand + context_ >= limit_ && !run_.limit_at && !loading) {
      run_.limit_at = shape.time_of(limit_ - context_);
    }
    const double until = std::min({end, t_.duration, run_.limit_at.value_or(end)});
    const double start = now_;
    for (; next_sample_ <= until; next_sample_ += 1 / t_.samples_per_second) {
      const double share = (next_sample_ - start) / std::max(end - start, 1e-9);
      const double allocated = loading ? limit_ * t_.base * std::min(1.0, share) : shape.at(next_sample_);
      reserve(loading ? allocated : shape.most_between(std::max(start, seen_), next_sample_));
      sample(allocated, loading ? allocated : shape.most_between(std::max(start, seen_), next_sample_));
      seen_ = next_sample_;
    }
    if (until > seen_) {
      const double most = loading ? limit_ * t_.base : shape.most_between(std::max(start, seen_), until);
      since_sample_ = std::max(since_sample_, most);
      reserve(most);
    }
    now_ = end;
  }

  void reserve(double allocated) {
    const double needed = allocated * (1 + fragmented_);
    reserved_ = std::max(reserved_, std::ceil(needed / kSegment) * kSegment);
    reserved_ = std::min(reserved_, limit_ - context_);
  }

  void sample(double allocated, double most) {
    most = std::max(most, since_sample_);
    since_sample_ = 0;
    if (t_.gap_at > 0 && next_sample_ > t_.gap_at && next_sample_ < t_.gap_at + kGap) return;
    double used = t_.view == View::allocated ? allocated : reserved_ + context_;
    if (t_.noise > 0) {
      others_ = 0.98 * others_ + 0.2 * random_.normal() * t_.noise * limit_;
      used += t_.view == View::device ? std::abs(others_) : 0;
    }
    UsageSample sample;
    sample.time_ns = static_cast<std::uint64_t>(next_sample_ * kNanosecondsPerSecond);
    sample.used_bytes = static_cast<std::uint64_t>(std::clamp(used, 0.0, limit_));
    if (t_.view == View::allocated && t_.peaks_known) {
      sample.peak_bytes = static_cast<std::uint64_t>(std::clamp(most, 0.0, limit_));
    }
    if (t_.steps_known) sample.steps = static_cast<std::uint64_t>(step_ > 0 ? step_ - 1 : 0);
    run_.samples.push_back(sample);
  }

  const Training& t_;
  Random& random_;
  double limit_;
  double next_sample_;
  LabelledRun run_;
  double context_ = 0;
  double now_ = 0;
  double seen_ = 0;  // peak included in samples up to here
  double since_sample_ = 0;
  double kept_ = 0;
  double garbage_ = 0;
  double fragmented_ = 0;
  double reserved_ = 0;
  double others_ = 0;
  int step_ = 0;
  int until_collection_ = t_.collect_every;
};

}  // namespace

LabelledRun simulate(const Training& training, Random& random) {
  return Simulation(training, random).run();
}

}  // namespace tidemark::detectors
