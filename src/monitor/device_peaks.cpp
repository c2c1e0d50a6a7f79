#include "monitor/device_peaks.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tidemark {
namespace {

constexpr std::size_t kMaxUnsettledSteps = 100'000;
constexpr std::size_t kMaxUnsettledSamples = 10'000;
constexpr std::size_t kMaxDoubts = 1'000;
// For this long, the least memory of a process is kept as one number.
constexpr std::uint64_t kStepNs = 20'000'000;
// Recordings of one recorder have the same sample at times that differ by rounding.
constexpr std::uint64_t kSameNs = 1'000;
// The driver changes the used memory some time before an allocator reports more, and after a call that releases memory
// was made. Taking 60 GiB takes 0.1 s; this is more than twice the delay.
constexpr std::uint64_t kCloseNs = 2'000'000;
constexpr std::uint64_t kCloseNsPerGib = 4'000'000;
// Memory of a process is released within this time after its end.
constexpr std::uint64_t kEndNs = 1'000'000'000;

std::int64_t whole(std::uint64_t bytes) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 56;  // sums of these do not overflow
  return static_cast<std::int64_t>(std::min(bytes, kMax));
}

std::uint64_t close_to(std::uint64_t rise) {
  return kCloseNs + (rise >> 30) * kCloseNsPerGib + ((rise & ((1U << 30) - 1)) * kCloseNsPerGib >> 30);
}

}  // namespace

void DevicePeaks::take(Process process, std::uint64_t time_ns, std::uint64_t bytes, std::uint64_t least_bytes) {
  Known& known = processes_[process];
  const bool is_new = known.latest_ns == 0;
  if (!is_new && bytes == known.latest_bytes && time_ns < known.latest_ns + kStepNs) {
    std::uint64_t& least = known.latest ? (*known.latest)->second.least_bytes : known.least_bytes;
    if (least_bytes >= least) return;
    if (!known.latest) least_sum_ -= whole(least) - whole(least_bytes);
    least = least_bytes;
    return;
  }
  if (time_ns < counted_ns_) begin_anew(time_ns = counted_ns_);
  known.latest = steps_.insert({time_ns, Step{process, bytes, least_bytes}});
  known.latest_ns = std::max<std::uint64_t>(time_ns, 1);
  known.latest_bytes = bytes;
  if (steps_.size() <= kMaxUnsettledSteps) return;
  samples_.clear();
  begin_anew(steps_.rbegin()->first);
  count_until(anew_ns_);
}

void DevicePeaks::end(Process process, std::uint64_t time_ns) {
  const auto known = processes_.find(process);
  if (known == processes_.end()) return;
  take(process, time_ns + kStepNs, known->second.latest_bytes, 0);
  Step step{process, 0, 0};
  step.last = true;
  steps_.insert({std::max(time_ns + kEndNs, counted_ns_), step});
}

void DevicePeaks::sample(std::uint64_t time_ns, std::uint64_t used_bytes) {
  if (sampled_ns_ && time_ns <= *sampled_ns_ + kSameNs) return;
  sampled_ns_ = time_ns;
  samples_.push_back({time_ns, used_bytes});
  if (samples_.size() > kMaxUnsettledSamples) samples_.pop_front();
}

void DevicePeaks::doubt(std::uint64_t from_ns, std::uint64_t to_ns) {
  doubts_.emplace_back(from_ns, to_ns);
  if (doubts_.size() > kMaxDoubts) doubts_.pop_front();
}

void DevicePeaks::begin_anew(std::uint64_t time_ns) {
  anew_ns_ = std::max(anew_ns_, time_ns);
  if (interval_ && interval_->begin_ns < anew_ns_) interval_.reset();
}

void DevicePeaks::settle(std::uint64_t until_ns) {
  while (!samples_.empty() && samples_.front().time_ns + kSameNs <= until_ns) {
    const Sample sample = samples_.front();
    samples_.pop_front();
    count_until(sample.time_ns + kSameNs);
    next_interval(sample);
  }
}

void DevicePeaks::finish() {
  settle(std::numeric_limits<std::uint64_t>::max());
  if (!steps_.empty()) count_until(steps_.rbegin()->first);
  if (!interval_) return;
  const auto others = end_interval();
  if (others && interval_->highest) found(*interval_->highest + *others);
  interval_.reset();
}

std::optional<std::uint64_t> DevicePeaks::take_peak() {
  return std::exchange(peak_, std::nullopt);
}

void DevicePeaks::count_until(std::uint64_t time_ns) {
  while (!steps_.empty() && steps_.begin()->first <= time_ns) {
    const auto step = steps_.begin();
    Known& known = processes_[step->second.process];
    if (known.latest == step) known.latest.reset();
    count(step->first, step->second);
    steps_.erase(step);
  }
  counted_ns_ = std::max(counted_ns_, time_ns);
}

void DevicePeaks::count(std::uint64_t time_ns, const Step& step) {
  Known& known = processes_[step.process];
  const std::uint64_t before = known.bytes;
  sum_ += whole(step.bytes) - whole(before);
  least_sum_ += whole(step.least_bytes) - whole(known.least_bytes);
  known.bytes = step.bytes;
  known.least_bytes = step.least_bytes;
  if (step.bytes < before) fell_ns_ = time_ns;
  if (interval_) {
    const bool rose = step.bytes > before;
    if (rose && time_ns <= interval_->begin_ns + close_to(step.bytes - before)) interval_->in_doubt = true;
    // For the other processes, only their certain memory: they may have released some that is not reported yet.
    const std::int64_t had = whole(step.bytes) + least_sum_ - whole(step.least_bytes);
    interval_->highest = std::max(interval_->highest.value_or(had), had);
  }
  if (step.last) processes_.erase(step.process);
}

std::optional<std::int64_t> DevicePeaks::end_interval() {
  const bool doubted = std::any_of(doubts_.begin(), doubts_.end(), [&](const auto& doubt) {
    return doubt.first <= interval_->begin_ns && interval_->begin_ns <= doubt.second;
  });
  std::erase_if(doubts_, [&](const auto& doubt) { return doubt.second < interval_->begin_ns; });
  if (!doubted && !interval_->in_doubt) return interval_->others;
  return interval_->before ? std::optional(std::min(interval_->others, *interval_->before)) : std::nullopt;
}

void DevicePeaks::next_interval(const Sample& sample) {
  const std::int64_t used = whole(sample.used_bytes);
  found(used);
  std::optional<std::int64_t> others;
  if (interval_) {
    others = end_interval();
    if (others && interval_->highest) found(*interval_->highest + std::min(*others, used - least_sum_));
  }
  interval_.reset();
  if (sample.time_ns < anew_ns_) return;
  const bool fell = fell_ns_ && sample.time_ns <= *fell_ns_ + kCloseNs;
  interval_ = Interval{sample.time_ns, used - sum_, others, fell, {}};
}

void DevicePeaks::found(std::int64_t bytes) {
  if (bytes > 0) peak_ = std::max(peak_.value_or(0), static_cast<std::uint64_t>(bytes));
}

}  // namespace tidemark
