#include "monitor/state_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "trace/record_members.h"
#include "trace/varint.h"

namespace tidemark {

// The members that are sent, in addition to those in recordings: the description shared by writing and reading. A new
// member goes to the end of its list, and needs a new kVersion.
struct StateFields : RecordMembers {
  /// A double that is sent without loss of precision.
  template <typename Member>
  struct Exact {
    Member member;
    explicit constexpr Exact(Member of) : member(of) {}  // clang 14 deduces no arguments of aggregates
  };

  using RecordMembers::of;
  static constexpr auto of(const DeviceInfo*) {
    using T = DeviceInfo;
    return std::tuple(&T::vendor, &T::index, &T::instance_of, &T::cuda_index, &T::name, &T::uuid, &T::bus_id,
                      &T::total_bytes, &T::mig_enabled);
  }
  /// Without the members that WatchedDevice has itself.
  static constexpr auto of(const DeviceSample*) {
    using T = DeviceSample;
    return std::tuple(&T::used_bytes, &T::driver_reserved_bytes, &T::utilization_percent, &T::temperature_celsius,
                      &T::power_milliwatts);
  }
  static constexpr auto of(const WatchedUsagePoint*) {
    using T = WatchedUsagePoint;
    return std::tuple(time(&T::begin_ns), time(&T::end_ns), &T::low_bytes, &T::high_bytes, &T::last_bytes);
  }
  static constexpr auto of(const WatchedSample*) {
    using T = WatchedSample;
    return std::tuple(time(&T::time_ns), &T::bytes, &T::high_bytes);
  }
  static constexpr auto of(const WatchedUsage*) {
    using T = WatchedUsage;
    return std::tuple(&T::capacity_, &T::max_newest_, &T::points_, &T::samples_, &T::samples_a_point_,
                      &T::in_last_point_, &T::first_, &T::newest_, &T::peak_, time(&T::peak_at_ns_),
                      &T::peak_is_sampled_, Exact{&T::sum_});
  }
  static constexpr auto of(const QuantileSketch::Bins*) {
    using T = QuantileSketch::Bins;
    return std::tuple(&T::first, &T::counts, &T::joined);
  }
  static constexpr auto of(const QuantileSketch*) {
    using T = QuantileSketch;
    return std::tuple(&T::count_, &T::zeros_, &T::positive_, &T::negative_);
  }
  static constexpr auto of(const RunningValue*) {
    using T = RunningValue;
    return std::tuple(&T::count, &T::average, &T::highest);
  }
  static constexpr auto of(const Interval*) {
    using T = Interval;
    return std::tuple(&T::expected, &T::earliest, &T::latest);
  }
  static constexpr auto of(const RiskAssessment*) {
    using T = RiskAssessment;
    return std::tuple(&T::level, &T::confidence, &T::pattern, &T::used_bytes, &T::used_percent,
                      &T::growth_bytes_per_second, &T::growth_error_bytes_per_second, &T::growth_seconds,
                      &T::seconds_to_limit, &T::steps_to_limit, &T::sample_count, &T::span_seconds, &T::change_points,
                      &T::period_seconds);
  }
  static constexpr auto of(const WatchedDevice*) {
    using T = WatchedDevice;
    return std::tuple(&T::key, &T::is_host, &T::info, &T::lost, &T::latest, time(&T::sampled_at_ns), &T::used,
                      &T::used_distribution, &T::used_percent, &T::utilization_percent, &T::processes, &T::risk,
                      time(&T::assessed_at_ns));
  }
  static constexpr auto of(const ProcessRisk*) {
    using T = ProcessRisk;
    return std::tuple(&T::risk, &T::limit_bytes);
  }
  static constexpr auto of(const ProcessOnDevice*) {
    using T = ProcessOnDevice;
    return std::tuple(&T::device, &T::held, &T::bytes, &T::used, &T::risk);
  }
  static constexpr auto of(const WatchedProcess*) {
    using T = WatchedProcess;
    return std::tuple(&T::pid, &T::kind, &T::name, time(&T::first_seen_ns), time(&T::last_seen_ns), &T::ended,
                      &T::devices, &T::rss_bytes, &T::pss_bytes, &T::rss, &T::pss, &T::risk, &T::on_host);
  }
  static constexpr auto of(const HostMemory*) {
    using T = HostMemory;
    return std::tuple(&T::total_bytes, &T::available_bytes);
  }
  static constexpr auto of(const WatchedHost*) {
    using T = WatchedHost;
    return std::tuple(&T::memory, &T::cgroup_folder, &T::cgroup_pid, &T::cgroup_usage_bytes,
                      &T::cgroup_inactive_file_bytes, &T::cgroup_limit_bytes, &T::cgroup_oom_kills, &T::cgroup_parts,
                      &T::machine_parts, &T::cgroup_oom_kills_at_start, &T::used, &T::used_percent, &T::risk,
                      time(&T::assessed_at_ns));
  }
  static constexpr auto of(const ProcessSteps*) {
    using T = ProcessSteps;
    return std::tuple(&T::pid, &T::device, &T::reserved_bytes, &T::steps);
  }
  static constexpr auto of(const MachineState*) {
    using T = MachineState;
    return std::tuple(&T::began_wall_ns, time(&T::now_ns), time(&T::now_wall_ns), time(&T::latest_reading_ns),
                      &T::devices_known, &T::problems, &T::no_gpu, &T::all_keys, &T::missing_keys, &T::devices,
                      &T::processes, &T::forgotten_processes, &T::host, &T::steps, &T::watched_pid);
  }
  static constexpr auto of(const LiveRecording*) {
    using T = LiveRecording;
    return std::tuple(&T::pid, &T::path, &T::rank, &T::command, &T::started_wall_ns, &T::started_ns);
  }
  static constexpr auto of(const RecordedDevice*) {
    using T = RecordedDevice;
    return std::tuple(&T::device, &T::key, &T::allocated_bytes, &T::reserved_bytes, &T::allocated, &T::reserved,
                      &T::unused_share, &T::peak_allocated_bytes, &T::peak_reserved_bytes);
  }
  static constexpr auto of(const RecordedOwners*) {
    using T = RecordedOwners;
    return std::tuple(&T::device, &T::categories, &T::components);
  }
  static constexpr auto of(const Slope*) { return std::tuple(&Slope::value, &Slope::low, &Slope::high); }
  static constexpr auto of(const LiveGrowth*) {
    using T = LiveGrowth;
    return std::tuple(&T::source, &T::classification, &T::bytes_per_minute, &T::bytes_per_step, &T::held_bytes,
                      &T::grown_bytes, &T::seconds, &T::steps, &T::grown_steps, &T::analyzed_steps);
  }
  static constexpr auto of(const LiveGrowths*) {
    using T = LiveGrowths;
    return std::tuple(&T::memory, &T::sources, &T::steps);
  }
  static constexpr auto of(const std::pair<Device, LiveGrowths>*) {
    using T = std::pair<Device, LiveGrowths>;
    return std::tuple(&T::first, &T::second);
  }
  static constexpr auto of(const RecordingLag*) {
    using T = RecordingLag;
    return std::tuple(&T::behind_bytes, &T::behind_seconds, &T::skipped_events, &T::skipped_until_ns,
                      &T::has_newest_totals);
  }
  static constexpr auto of(const RecordedProcess*) {
    using T = RecordedProcess;
    return std::tuple(&T::recording, &T::state, &T::problem, &T::caught_up, &T::lag, &T::steps, &T::devices,
                      &T::cuda_pinned_bytes, &T::killed, &T::owners, &T::growths);
  }
  static constexpr auto of(const MonitorSnapshot*) {
    using T = MonitorSnapshot;
    return std::tuple(&T::state, &T::recorded);
  }

  using RecordMembers::bounds;
  static constexpr EnumBounds<RiskLevel> bounds(std::type_identity<RiskLevel>) { return {RiskLevel::critical, {}}; }
  static constexpr EnumBounds<UsagePattern> bounds(std::type_identity<UsagePattern>) {
    return {UsagePattern::released, {}};
  }
  static constexpr EnumBounds<WatchedPid> bounds(std::type_identity<WatchedPid>) { return {WatchedPid::ended, {}}; }
  static constexpr EnumBounds<FollowState> bounds(std::type_identity<FollowState>) {
    return {FollowState::changed, {}};
  }
  static constexpr EnumBounds<GrowthClass> bounds(std::type_identity<GrowthClass>) {
    return {GrowthClass::with_work, {}};
  }

  /// Whether they have the same samples, of which `sent` has only the latest.
  static bool is_same(const WatchedUsage& now, const WatchedUsage& sent) {
    return now.samples_ == sent.samples_ && now.points_ == sent.points_ && now.sum_ == sent.sum_ &&
           now.peak_ == sent.peak_ && now.peak_at_ns_ == sent.peak_at_ns_ &&
           now.peak_is_sampled_ == sent.peak_is_sampled_ && now.first_ == sent.first_ &&
           now.capacity_ == sent.capacity_ && now.in_last_point_ == sent.in_last_point_ &&
           now.samples_a_point_ == sent.samples_a_point_ && (now.empty() || now.last_sample() == sent.last_sample());
  }
  /// Whether `now` may be `sent` plus samples that it still contains.
  static bool may_be_appended(const WatchedUsage& now, const WatchedUsage& sent) {
    return !sent.empty() && now.samples_ > sent.samples_ && now.samples_ - sent.samples_ <= now.newest_.size() &&
           now.capacity_ == sent.capacity_;
  }
  static void forget_late_peaks(WatchedUsage& used) { used.late_peak_ = used.next_late_peak_ = 0; }
  /// Invariants of a valid encoder's data: the numbers from which add() computes positions.
  static bool is_sound(const WatchedUsage& used) {
    return used.capacity_ >= 2 && used.capacity_ % 2 == 0 && used.capacity_ <= 1U << 16 &&
           used.points_.size() <= used.capacity_ && used.max_newest_ >= 1 && used.newest_.size() <= used.max_newest_ &&
           used.max_newest_ <= WatchedUsage::kNewest && used.points_.empty() == used.newest_.empty() &&
           used.points_.empty() == (used.samples_ == 0);
  }
  static bool is_sound(const QuantileSketch& sketch) {
    const auto is_bounded = [](const QuantileSketch::Bins& bins) {
      constexpr std::int32_t kFar = 1 << 20;
      return bins.counts.size() <= QuantileSketch::kMaxBins && bins.first > -kFar && bins.first < kFar;
    };
    return is_bounded(sketch.positive_) && is_bounded(sketch.negative_);
  }
};

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 4;

template <typename T>
concept Sent = Described<T, StateFields>;
template <typename T>
concept Whole = std::integral<T> || std::is_enum_v<T>;

template <Whole T>
constexpr std::uint64_t code_of(T value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
constexpr std::uint64_t code_of(std::uint64_t value) {
  return value;
}

// Values beyond the highest float become that one.
float as_float(double value) {
  constexpr double kHighest = std::numeric_limits<float>::max();
  return static_cast<float>(value > kHighest ? kHighest : value < -kHighest ? -kHighest : value);
}
std::uint32_t float_bits(double value) {
  return std::bit_cast<std::uint32_t>(as_float(value));
}

// ---- whether something has to be sent

template <Whole T>
bool is_sent(const T& now, const T& sent) {
  return now == sent;
}
bool is_sent(const double& now, const double& sent) {
  return float_bits(now) == float_bits(sent);
}
bool is_sent(const std::string& now, const std::string& sent) {
  return now == sent;
}
bool is_sent(const WatchedUsage& now, const WatchedUsage& sent) {
  return StateFields::is_same(now, sent);
}
template <Sent T>
bool is_sent(const T& now, const T& sent);
template <typename T>
bool is_sent(const std::optional<T>& now, const std::optional<T>& sent);
template <typename T, std::size_t kSize>
bool is_sent(const std::array<T, kSize>& now, const std::array<T, kSize>& sent);
template <typename T>
bool is_sent(const std::vector<T>& now, const std::vector<T>& sent) {
  return std::equal(now.begin(), now.end(), sent.begin(), sent.end(),
                    [](const T& a, const T& b) { return is_sent(a, b); });
}
template <typename T>
bool is_sent(const std::optional<T>& now, const std::optional<T>& sent) {
  return now.has_value() == sent.has_value() && (!now || is_sent(*now, *sent));
}
template <typename T, std::size_t kSize>
bool is_sent(const std::array<T, kSize>& now, const std::array<T, kSize>& sent) {
  return std::equal(now.begin(), now.end(), sent.begin(), [](const T& a, const T& b) { return is_sent(a, b); });
}

template <typename T, typename Member>
decltype(auto) get(T& of, StateFields::Time<Member> time) {
  return (of.*time.member);
}
template <typename T, typename Member>
decltype(auto) get(T& of, StateFields::Exact<Member> exact) {
  return (of.*exact.member);
}
template <typename T, typename Member>
decltype(auto) get(T& of, Member member) {
  return (of.*member);
}
template <typename T, typename Member>
bool is_member_sent(const T& now, const T& sent, StateFields::Exact<Member> exact) {
  return std::bit_cast<std::uint64_t>(now.*exact.member) == std::bit_cast<std::uint64_t>(sent.*exact.member);
}
template <typename T, typename Member>
bool is_member_sent(const T& now, const T& sent, Member member) {
  return is_sent(get(now, member), get(sent, member));
}
template <Sent T>
bool is_sent(const T& now, const T& sent) {
  return std::apply([&](auto... member) { return (is_member_sent(now, sent, member) && ...); }, StateFields::of(&now));
}

// ---- histories, shared by writing and reading

/// Each point after the one before.
template <typename Codec, typename Points>
void visit_points(Codec& codec, Points& points) {
  WatchedUsagePoint before;
  for (auto& point : points) {
    codec.difference(before.end_ns, point.begin_ns);
    codec.difference(point.begin_ns, point.end_ns);
    codec.difference(before.low_bytes, point.low_bytes);
    codec.difference(point.low_bytes, point.high_bytes);
    codec.difference(point.low_bytes, point.last_bytes);
    before = point;
  }
}

/// The sample after the last one of `used`: writes or reads it.
template <typename Codec>
void visit_next_sample(Codec& codec, std::uint64_t elapsed_ns, WatchedSample sample, WatchedUsage& used) {
  const WatchedSample before = used.last_sample();
  std::uint64_t above = sample.high_bytes - sample.bytes;
  codec.difference(before.time_ns + elapsed_ns, sample.time_ns);
  codec.difference(before.bytes, sample.bytes);
  codec.difference(before.high_bytes - before.bytes, above);
  used.add(sample.time_ns, sample.bytes, sample.bytes + above);
}

// ---- writing

/// Writes the differences between a state and the one sent before, and updates the latter to what a reader has then.
class Writer {
 public:
  explicit Writer(std::uint64_t elapsed_ns) : elapsed_ns_(elapsed_ns) {}

  void put_number(std::uint64_t value) {
    std::array<std::uint8_t, kMaxVarintBytes> bytes{};
    const std::uint8_t* const end = put_varint(bytes.data(), value);
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(end - bytes.data()));
  }

  void difference(std::uint64_t from, std::uint64_t value) { put_number(delta_code(from, value)); }

  template <Whole T>
  void put(const T& now, T& sent) {
    put_number(delta_code(code_of(sent), code_of(now)));
    sent = now;
  }
  void put(const double& now, double& sent) {
    put_number(float_bits(now) ^ float_bits(sent));
    sent = static_cast<double>(as_float(now));
  }
  void put(const std::string& now, std::string& sent) {
    put_number(now.size());
    bytes_ += now;
    sent = now;
  }
  template <typename T>
  void put(const std::optional<T>& now, std::optional<T>& sent) {
    put_number(now ? 1 : 0);
    if (!now) {
      sent.reset();
      return;
    }
    if (!sent) sent.emplace();
    put(*now, *sent);
  }
  template <typename T, std::size_t kSize>
  void put(const std::array<T, kSize>& now, std::array<T, kSize>& sent) {
    for (std::size_t n = 0; n < kSize; ++n) put(now[n], sent[n]);
  }
  template <typename T>
  void put(const std::vector<T>& now, std::vector<T>& sent) {
    put_number(now.size());
    sent.resize(now.size());
    for (std::size_t n = 0; n < now.size(); ++n) put(now[n], sent[n]);
  }
  // Few of many change: alternates the number of unchanged values and a changed one.
  void put(const std::vector<std::uint64_t>& now, std::vector<std::uint64_t>& sent) {
    put_number(now.size());
    sent.resize(now.size());
    std::size_t same = 0;
    for (std::size_t n = 0; n < now.size(); ++n) {
      if (now[n] == sent[n]) {
        ++same;
        continue;
      }
      put_number(std::exchange(same, 0));
      put(now[n], sent[n]);
    }
    if (same > 0) put_number(same);
  }
  template <Sent T>
  void put(const T& now, T& sent) {
    std::apply([&](auto... member) { put_members(now, sent, member...); }, StateFields::of(&now));
  }
  // Number of new samples plus one; or kWholeHistory and the history.
  void put(const WatchedUsage& now, WatchedUsage& sent) {
    if (StateFields::may_be_appended(now, sent)) {
      WatchedUsage grown = sent;
      const std::size_t position = bytes_.size();
      append(now, grown);
      if (is_sent(now, grown)) {
        sent = std::move(grown);
        return;
      }
      bytes_.resize(position);
    }
    put_number(kWholeHistory);
    sent = now.condensed(kSentPoints);
    WatchedUsage nothing;
    std::apply([&](auto... member) { put_members(sent, nothing, member...); }, StateFields::of(&sent));
  }
  void put(const std::vector<WatchedUsagePoint>& now, std::vector<WatchedUsagePoint>& sent) {
    put_number(now.size());
    visit_points(*this, now);
    sent = now;
  }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

  static constexpr std::uint64_t kWholeHistory = 1000;

 private:
  template <typename T, typename... Member>
  void put_members(const T& now, T& sent, Member... member) {
    std::uint64_t changed = 0;
    std::size_t bit = 0;
    ((changed |= std::uint64_t{is_changed(now, sent, member)} << bit++), ...);
    put_number(changed);
    bit = 0;
    ((((changed >> bit++) & 1) != 0 ? put_member(now, sent, member) : void()), ...);
  }
  template <typename T, typename Member>
  static bool is_changed(const T& now, const T& sent, Member member) {
    return !is_member_sent(now, sent, member);
  }
  template <typename T, typename Member>
  void put_member(const T& now, T& sent, Member member) {
    put(get(now, member), get(sent, member));
  }
  template <typename T, typename Member>
  void put_member(const T& now, T& sent, StateFields::Exact<Member> exact) {
    put_number(std::bit_cast<std::uint64_t>(now.*exact.member) ^ std::bit_cast<std::uint64_t>(sent.*exact.member));
    sent.*exact.member = now.*exact.member;
  }
  template <typename T, typename Member>
  void put_member(const T& now, T& sent, StateFields::Time<Member> time) {
    put_time(now.*time.member, sent.*time.member);
  }
  void put_time(const std::uint64_t& now, std::uint64_t& sent) {
    put_number(delta_code(sent + elapsed_ns_, now));
    sent = now;
  }
  void put_time(const std::optional<std::uint64_t>& now, std::optional<std::uint64_t>& sent) {
    put_number(now ? 1 : 0);
    if (now) put_number(delta_code(sent.value_or(0) + elapsed_ns_, *now));
    sent = now;
  }
  // The latest sample's peak may have been raised since.
  void append(const WatchedUsage& now, WatchedUsage& grown) {
    const auto count = static_cast<std::size_t>(now.sample_count() - grown.sample_count());
    const std::span<const WatchedSample> newest = now.newest();
    put_number(count + 1);
    const std::uint64_t known_high = grown.last_sample().high_bytes;
    const bool has_late_peak = newest.size() > count && newest[newest.size() - count - 1].high_bytes > known_high;
    const std::uint64_t late = has_late_peak ? newest[newest.size() - count - 1].high_bytes - known_high : 0;
    put_number(late);
    if (late > 0) grown.add_peak(known_high + late);
    for (const WatchedSample& sample : newest.last(count)) visit_next_sample(*this, elapsed_ns_, sample, grown);
    StateFields::forget_late_peaks(grown);
  }

  std::uint64_t elapsed_ns_;
  std::string bytes_;
};

// ---- reading

/// Applies the changes of a Writer to a state. After an error, discard the state.
class Reader {
 public:
  Reader(const std::uint8_t* begin, const std::uint8_t* end) : at_(begin), end_(end) {}

  void set_elapsed(std::uint64_t elapsed_ns) { elapsed_ns_ = elapsed_ns; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return at_ == end_; }

  std::uint64_t number() {
    if (!ok_ || at_ >= end_) return fail();
    const std::uint64_t value = get_varint(at_);
    return at_ <= end_ ? value : fail();
  }

  void difference(std::uint64_t from, std::uint64_t& value) { value = apply_delta(from, number()); }

  template <Whole T>
  void get_value(T& value) {
    const std::uint64_t code = apply_delta(code_of(value), number());
    const T got = static_cast<T>(code);
    if (code_of(got) != code) fail();
    if constexpr (std::is_enum_v<T>) {
      if (got > StateFields::bounds(std::type_identity<T>()).last) fail();
    }
    if (ok_) value = got;
  }
  void get_value(bool& value) {
    const std::uint64_t code = apply_delta(code_of(value), number());
    if (code > 1) fail();
    value = code == 1;
  }
  void get_value(double& value) {
    const std::uint64_t bits = float_bits(value) ^ number();
    if (bits > std::numeric_limits<std::uint32_t>::max()) fail();
    value = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  void get_value(std::string& text) {
    const std::uint64_t size = number();
    if (!ok_ || size > static_cast<std::uint64_t>(end_ - at_)) {
      fail();
      return;
    }
    text.assign(reinterpret_cast<const char*>(at_), size);
    at_ += size;
  }
  template <typename T>
  void get_value(std::optional<T>& value) {
    if (!flag()) {
      value.reset();
      return;
    }
    if (!value) value.emplace();
    get_value(*value);
  }
  template <typename T, std::size_t kSize>
  void get_value(std::array<T, kSize>& values) {
    for (T& value : values) get_value(value);
  }
  template <typename T>
  void get_value(std::vector<T>& values) {
    if (!resize(values)) return;
    for (T& value : values) {
      if (!ok_) return;
      get_value(value);
    }
  }
  void get_value(std::vector<std::uint64_t>& values) {
    if (!resize(values)) return;
    for (std::size_t n = 0; ok_ && n < values.size(); ++n) {
      const std::uint64_t same = number();
      if (same > values.size() - n) {
        fail();
        return;
      }
      n += same;
      if (n < values.size()) get_value(values[n]);
    }
  }
  template <Sent T>
  void get_value(T& value) {
    std::apply([&](auto... member) { get_members(value, member...); }, StateFields::of(&value));
    if constexpr (std::is_same_v<T, QuantileSketch>) {
      if (!StateFields::is_sound(value)) fail();
    }
  }
  void get_value(WatchedUsage& used) {
    const std::uint64_t kind = number();
    if (kind != Writer::kWholeHistory) return append(used, kind);
    used = {};
    std::apply([&](auto... member) { get_members(used, member...); }, StateFields::of(&used));
    if (!StateFields::is_sound(used)) fail();
  }
  void get_value(std::vector<WatchedUsagePoint>& points) {
    if (resize(points)) visit_points(*this, points);
  }

 private:
  std::uint64_t fail() {
    ok_ = false;
    return 0;
  }
  bool flag() {
    const std::uint64_t value = number();
    if (value > 1) fail();
    return ok_ && value == 1;
  }
  template <typename T>
  bool resize(std::vector<T>& values) {
    const std::uint64_t size = number();
    if (!ok_ || size > StateDecoder::kMaxListed) return fail() != 0;
    budget_ += size * sizeof(T);
    if (budget_ > StateDecoder::kMaxStateBytes) return fail() != 0;
    values.resize(size);
    return true;
  }
  template <typename T, typename... Member>
  void get_members(T& value, Member... member) {
    const std::uint64_t changed = number();
    if (changed >> sizeof...(Member) != 0) fail();
    std::size_t bit = 0;
    ((ok_ && ((changed >> bit) & 1) != 0 ? get_member(value, member) : void(), ++bit), ...);
  }
  template <typename T, typename Member>
  void get_member(T& value, Member member) {
    get_value(value.*member);
  }
  template <typename T, typename Member>
  void get_member(T& value, StateFields::Exact<Member> exact) {
    value.*exact.member = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value.*exact.member) ^ number());
  }
  template <typename T, typename Member>
  void get_member(T& value, StateFields::Time<Member> time) {
    get_time(value.*time.member);
  }
  void get_time(std::uint64_t& time) { time = apply_delta(time + elapsed_ns_, number()); }
  void get_time(std::optional<std::uint64_t>& time) {
    time = flag() ? std::optional(apply_delta(time.value_or(0) + elapsed_ns_, number())) : std::nullopt;
  }
  void append(WatchedUsage& used, std::uint64_t kind) {
    if (!ok_ || used.empty() || kind < 2 || kind > WatchedUsage::kNewest + 1) {
      fail();
      return;
    }
    const std::uint64_t count = kind - 1;
    if (const std::uint64_t late = number(); late > 0) used.add_peak(used.last_sample().high_bytes + late);
    for (std::uint64_t n = 0; ok_ && n < count; ++n) visit_next_sample(*this, elapsed_ns_, {}, used);
    StateFields::forget_late_peaks(used);
    if (!StateFields::is_sound(used)) fail();  // the number of samples may have been the maximum
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint64_t elapsed_ns_ = 0;
  std::size_t budget_ = 0;
  bool ok_ = true;
};

// ---- size limits applied by a sender

template <typename T>
std::size_t memory_of(const T& value);
template <typename T>
std::size_t memory_of(const std::optional<T>& value);
template <typename T>
std::size_t memory_of(const std::vector<T>& values) {
  std::size_t bytes = values.size() * sizeof(T);
  for (const T& value : values) bytes += memory_of(value);
  return bytes;
}
template <typename T>
std::size_t memory_of(const std::optional<T>& value) {
  return value ? memory_of(*value) : 0;
}
template <typename T>
std::size_t memory_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.size();
  } else if constexpr (Sent<T>) {
    return std::apply([&](auto... member) { return (memory_of(get(value, member)) + ... + std::size_t{0}); },
                      StateFields::of(&value));
  } else {
    return 0;
  }
}

// Positions that other code uses without a check.
bool is_sound(const MonitorSnapshot& snapshot) {
  const MachineState& state = snapshot.state;
  return std::ranges::all_of(state.processes, [&](const WatchedProcess& process) {
    return std::ranges::all_of(process.devices,
                               [&](const ProcessOnDevice& on) { return on.device < state.devices.size(); });
  });
}

/// Calls `change` for each history of it.
template <typename Change>
void change_histories(MonitorSnapshot& snapshot, const Change& change) {
  for (WatchedDevice& device : snapshot.state.devices) change(device.used);
  for (WatchedProcess& process : snapshot.state.processes) {
    change(process.rss);
    change(process.pss);
    for (ProcessOnDevice& on : process.devices) change(on.used);
  }
  change(snapshot.state.host.used);
  for (RecordedProcess& process : snapshot.recorded) {
    for (RecordedDevice& on : process.devices) {
      change(on.allocated);
      change(on.reserved);
    }
  }
}

std::uint32_t checksum(std::string_view bytes) {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace

MonitorSnapshot condensed(const MonitorSnapshot& state) {
  MonitorSnapshot few = state;
  change_histories(few, [](WatchedUsage& used) { used = used.condensed(kSentPoints); });
  return few;
}

std::string StateEncoder::full(const MonitorSnapshot& state) {
  sent_ = {};
  return encode(state, 0);
}

std::string StateEncoder::changes(const MonitorSnapshot& state) {
  return sequence_ == 0 ? full(state) : encode(state, sequence_);
}

std::string StateEncoder::encode(const MonitorSnapshot& state, std::uint64_t base) {
  MonitorSnapshot few = state;
  change_histories(few, [](WatchedUsage& used) { used = used.condensed(kSentPoints, WatchedUsage::kNewest); });
  const std::uint64_t elapsed_ns = state.state.now_ns - sent_.state.now_ns;
  Writer writer(elapsed_ns);
  writer.put_number(++sequence_);
  writer.put_number(base);
  writer.put_number(elapsed_ns);
  writer.put(few, sent_);
  std::string message = static_cast<char>(kVersion) + writer.take();
  const std::uint32_t sum = checksum(message);
  for (std::size_t byte = 0; byte < kChecksumBytes; ++byte) message += static_cast<char>(sum >> (8 * byte));
  return message;
}

Result<void> StateDecoder::take(std::string_view message) {
  if (message.size() <= kChecksumBytes + 1 || message.size() > kMaxMessageBytes) {
    return Error{"a state of a machine is too short or too long: it is damaged; ask for a full one"};
  }
  const std::string_view body = message.substr(0, message.size() - kChecksumBytes);
  std::uint32_t sum = 0;
  for (std::size_t byte = 0; byte < kChecksumBytes; ++byte) {
    sum |= std::uint32_t{static_cast<std::uint8_t>(message[body.size() + byte])} << (8 * byte);
  }
  if (static_cast<std::uint8_t>(body.front()) != kVersion) {
    return Error{"a state of a machine is of another version of Tidemark: use the same version on all machines"};
  }
  if (sum != checksum(body)) return Error{"a state of a machine has a wrong checksum: ask for a full one"};
  std::vector<std::uint8_t> bytes(body.size() + kMaxVarintBytes);  // get_varint() reads beyond the end
  std::memcpy(bytes.data(), body.data(), body.size());
  Reader reader(bytes.data() + 1, bytes.data() + body.size());
  const std::uint64_t sequence = reader.number();
  const std::uint64_t base = reader.number();
  if (!reader.ok() || sequence == 0)
    return Error{"a state of a machine has no number: it is damaged; ask for a full one"};
  if (base != 0 && base != sequence_) {
    return Error{"changes of a machine's state are not of the state that is known: ask for a full one"};
  }
  if (base == 0) state_ = {};
  reader.set_elapsed(reader.number());
  reader.get_value(state_);
  sequence_ = sequence;
  if (reader.ok() && reader.at_end() && is_sound(state_) && memory_of(state_) <= kMaxStateBytes) return {};
  state_ = {};
  sequence_ = 0;
  return Error{"a state of a machine makes no sense: it is damaged; ask for a full one"};
}

}  // namespace tidemark
