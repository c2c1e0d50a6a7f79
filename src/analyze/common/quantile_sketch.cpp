#include "analyze/common/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark {
namespace {

// std::log() is no constant expression: ln gamma = 2 artanh a, and 2 / (gamma + 1) = 1 - a.
static_assert(QuantileSketch::kRelativeError == 0.01);
constexpr double kLogGamma = 0.020000666706669525;
constexpr double kInverseLogGamma = 1 / kLogGamma;
constexpr std::int32_t kSlack = 32;  // bins that are added at once

// Bin i has the values in (gamma^(i-1), gamma^i].
std::int32_t bin_of(double magnitude) {
  return static_cast<std::int32_t>(std::ceil(std::log(magnitude) * kInverseLogGamma));
}

// The middle of a bin, as far from one bound as from the other in relation to them: 2 gamma^i / (gamma + 1).
double value_of(std::int32_t bin) {
  constexpr double kLogMiddle = -0.010050335853501442;  // ln(1 - a)
  return std::min(std::exp(bin * kLogGamma + kLogMiddle), std::numeric_limits<double>::max());
}

}  // namespace

// Makes room for `index`, or for as much of it as the bound allows: the highest bins stay.
void QuantileSketch::Bins::cover(std::int32_t index) {
  constexpr auto kMax = static_cast<std::int32_t>(kMaxBins);
  if (counts.empty()) {
    counts.resize(kSlack);
    first = index - kSlack / 2;
    return;
  }
  if (index > last()) {
    const std::int32_t end = index + kSlack;
    const std::int32_t lowest = std::max(first, end - kMax);
    if (lowest > first) {
      const auto gone = static_cast<std::size_t>(std::min(lowest - first, static_cast<std::int32_t>(counts.size())));
      std::uint64_t below = 0;
      for (std::size_t n = 0; n < gone; ++n) below += counts[n];
      counts.erase(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(gone));
      first = lowest;
      counts.resize(static_cast<std::size_t>(end - lowest));
      counts.front() += below;
      joined = joined || below > 0;
    } else {
      counts.resize(static_cast<std::size_t>(end - first));
    }
  } else if (index < first) {
    const std::int32_t lowest = std::max(index - kSlack, last() - kMax + 1);
    if (lowest < first) {
      counts.insert(counts.begin(), static_cast<std::size_t>(first - lowest), 0);
      first = lowest;
    }
  }
}

void QuantileSketch::Bins::add(std::int32_t index, std::uint64_t count) {
  if (counts.empty() || index < first || index > last()) cover(index);
  if (index < first) {
    joined = true;
    index = first;
  }
  counts[static_cast<std::size_t>(index - first)] += count;
}

void QuantileSketch::add(double value) {
  if (value > 0) {
    positive_.add(bin_of(value), 1);
  } else if (value < 0) {
    negative_.add(bin_of(-value), 1);
  } else {
    ++zeros_;
  }
  ++count_;
}

void QuantileSketch::merge(const QuantileSketch& other) {
  const auto add_all = [](Bins& into, const Bins& from) {
    // The highest first, so that bins are joined only once.
    for (std::size_t n = from.counts.size(); n-- > 0;) {
      if (from.counts[n] > 0) into.add(from.first + static_cast<std::int32_t>(n), from.counts[n]);
    }
    into.joined = into.joined || from.joined;
  };
  add_all(positive_, other.positive_);
  add_all(negative_, other.negative_);
  zeros_ += other.zeros_;
  count_ += other.count_;
}

std::optional<double> QuantileSketch::quantile(double share) const {
  if (count_ == 0) return std::nullopt;
  const auto rank = static_cast<std::uint64_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_ - 1));
  std::uint64_t below = 0;
  for (std::size_t n = negative_.counts.size(); n-- > 0;) {
    below += negative_.counts[n];
    if (below > rank) return -value_of(negative_.first + static_cast<std::int32_t>(n));
  }
  below += zeros_;
  if (below > rank) return 0;
  for (std::size_t n = 0; n < positive_.counts.size(); ++n) {
    below += positive_.counts[n];
    if (below > rank) return value_of(positive_.first + static_cast<std::int32_t>(n));
  }
  return std::nullopt;
}

}  // namespace tidemark
