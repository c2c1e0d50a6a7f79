// How often the search keeps its promise, 5% in 8 probes, for kinds of memory use, with many random curves of each. The
// printed figures are in docs/memory-manager.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "batching/batch_search.h"

namespace tidemark::batch_curves {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr int kCurves = 1000;

class Random {
 public:
  // The same on every machine, unlike the standard library's distributions.
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }

 private:
  std::mt19937_64 engine_{20261123};
};

struct Curve {
  std::function<double(double size)> bytes;
  double limit;       ///< given to the search
  double real_limit;  ///< limit of what fits: lower if free memory is fragmented
};

// Start of a curve: its constant part, and `full`, where it reaches the limit.
struct Frame {
  double limit;
  double constant;
  double full;
  [[nodiscard]] double room() const { return limit - constant; }
};

using Kind = std::function<Curve(const Frame& frame, Random& random)>;

Curve power(const Frame& frame, double exponent) {
  return {[=](double size) { return frame.constant + frame.room() * std::pow(size / frame.full, exponent); },
          frame.limit, frame.limit};
}

Curve segments(Curve curve, double unit) {
  return {[=](double size) { return std::ceil(curve.bytes(size) / unit) * unit; }, curve.limit, curve.real_limit};
}

// The growth is up to 1% more or less, by the size.
Curve noisy(const Curve& curve, double constant) {
  return {[=](double size) {
            const double share = std::fmod(std::abs(std::sin(size) * 43758.5453), 1.0);
            return constant + (curve.bytes(size) - constant) * (0.99 + 0.02 * share);
          },
          curve.limit, curve.real_limit};
}

Curve with_workspace(const Frame& frame, double share, double from) {
  const Curve line = power(frame, 1);
  return {[=](double size) { return line.bytes(size) + (size >= from ? share * frame.room() : 0); }, frame.limit,
          frame.limit};
}

// The first size that does not fit, minus one. Works with noise and steps: searches upwards from nearby.
double largest_that_fits(const Curve& curve, double full) {
  double low = 0;
  double high = 2 * full + 8;
  while (low + 1 < high) {
    const double middle = std::floor((low + high) / 2);
    (curve.bytes(middle) <= curve.real_limit ? low : high) = middle;
  }
  const double begin = std::max(1.0, std::floor(0.97 * low));
  const double step = std::max(1.0, std::floor((low - begin) / 100));
  for (double size = begin; size < low; size += step) {
    if (curve.bytes(size) > curve.real_limit) return size - 1;
  }
  return low;
}

struct Figures {
  int all = 0;
  int kept = 0;
  double worst = 0;
  double probes = 0;
  double failures = 0;

  [[nodiscard]] double share() const { return static_cast<double>(kept) / all; }
};

Figures measure(const Kind& kind, double largest, bool any_start) {
  Figures figures;
  Random random;
  for (int number = 0; number < kCurves; ++number) {
    const double limit = random.between(4, 192) * kGiB;
    const Frame frame = {limit, random.between(0, 0.8) * limit, std::exp2(random.between(0, std::log2(largest)))};
    const Curve curve = kind(frame, random);
    BatchSearchOptions options;
    options.limit_bytes = static_cast<std::uint64_t>(curve.limit);
    if (any_start) options.start = static_cast<std::size_t>(std::exp2(random.between(0, 20)));
    const double truth = largest_that_fits(curve, frame.full);
    if (truth < 1) continue;
    BatchSearch search = *BatchSearch::create(options);
    while (const auto size = search.next()) {
      const double bytes = curve.bytes(static_cast<double>(*size));
      const bool fits = bytes <= curve.real_limit;
      search.report(*size, fits, fits ? std::optional(static_cast<std::uint64_t>(bytes)) : std::nullopt);
      ++figures.probes;
      if (!fits) ++figures.failures;
    }
    EXPECT_LE(search.result().probes, 8U);
    const auto found = static_cast<double>(search.result().batch_size.value_or(0));
    ++figures.all;
    if (found >= 0.95 * truth) ++figures.kept;
    figures.worst = std::max(figures.worst, 1 - found / truth);
  }
  return figures;
}

void check(const char* name, const Kind& kind, double up_to_65536, double up_to_a_million) {
  for (const bool any_start : {false, true}) {
    for (const auto& [largest, least] : {std::pair(65536.0, up_to_65536), std::pair(1048576.0, up_to_a_million)}) {
      const Figures figures = measure(kind, largest, any_start);
      std::printf("%-28s %-10s to %8.0f: %6.2f%% kept, worst %5.1f%%, %.1f probes, %.1f of them failed\n", name,
                  any_start ? "any start," : "start 1,", largest, 100 * figures.share(), 100 * figures.worst,
                  figures.probes / figures.all, figures.failures / figures.all);
      EXPECT_GE(figures.share(), least) << name << ", up to " << largest << (any_start ? ", any start" : ", start 1");
    }
  }
}

TEST(BatchSearchCurves, Lines) {
  check(
      "line", [](const Frame& frame, Random&) { return power(frame, 1); }, 1, 1);
  check(
      "line, segments of 2 MiB", [](const Frame& frame, Random&) { return segments(power(frame, 1), 2 * kMiB); }, 1, 1);
  check(
      "line, segments of 20 MiB", [](const Frame& frame, Random&) { return segments(power(frame, 1), 20 * kMiB); }, 1,
      1);
  check(
      "line, 1% of noise", [](const Frame& frame, Random&) { return noisy(power(frame, 1), frame.constant); }, 0.995,
      0.995);
}

TEST(BatchSearchCurves, Powers) {
  const Kind sum = [](const Frame& frame, Random& random) {
    const double share = random.between(0, 1);
    return Curve{[=](double size) {
                   const double part = size / frame.full;
                   return frame.constant + frame.room() * (share * part + (1 - share) * part * part);
                 },
                 frame.limit, frame.limit};
  };
  check("line and square", sum, 0.99, 0.99);
  check(
      "square", [](const Frame& frame, Random&) { return power(frame, 2); }, 0.99, 0.99);
  check(
      "power of 0.5 to 1", [](const Frame& frame, Random& random) { return power(frame, random.between(0.5, 1)); },
      0.99, 0.99);
  check(
      "power of 1 to 2.5", [](const Frame& frame, Random& random) { return power(frame, random.between(1, 2.5)); },
      0.99, 0.99);
  const Kind all = [](const Frame& frame, Random& random) {
    return segments(noisy(power(frame, random.between(0.7, 2)), frame.constant), 20 * kMiB);
  };
  check("0.7 to 2, noise, segments", all, 0.99, 0.99);
}

TEST(BatchSearchCurves, UnpredictableCurves) {
  for (const double most : {0.1, 0.5}) {
    const Kind jumps = [most](const Frame& frame, Random& random) {
      const double share = random.between(0, most);
      return with_workspace(frame, share, std::exp2(random.between(0, std::log2(frame.full))));
    };
    check(most < 0.2 ? "line, workspace to 10%" : "line, workspace to 50%", jumps, most < 0.2 ? 0.99 : 0.95,
          most < 0.2 ? 0.99 : 0.93);
  }
  const Kind floor = [](const Frame& frame, Random& random) {
    const double least = frame.constant + random.between(0, 0.6) * frame.room();
    const Curve line = power(frame, 1);
    return Curve{[=](double size) { return std::max(least, line.bytes(size)); }, frame.limit, frame.limit};
  };
  check("line above a floor to 60%", floor, 0.75, 0.65);
  const Kind pieces = [](const Frame& frame, Random& random) {
    Curve curve = power(frame, random.between(0.8, 1.5));
    curve.real_limit = random.between(0.9, 1) * curve.limit;
    return curve;
  };
  check("free memory in pieces", pieces, 0.95, 0.93);
}

}  // namespace
}  // namespace tidemark::batch_curves
