#include "batching/batch_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "batching/free_memory.h"

namespace tidemark {

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
/// From the first size to the second.
constexpr double kFirstGrowth = 8;
/// Maximum growth of the size while its memory cannot be distinguished from the rounding.
constexpr double kBlindGrowth = 256;
constexpr double kGrowthWithoutPeaks = 4;
/// Share of the guesses below the next size. A failure is less informative than a peak, and costs less if a bound is
/// known already.
constexpr double kBelowOpen = 0.3;
constexpr double kBelowBounded = 0.4;
/// Bounds that are not further apart are near.
constexpr double kFewSizes = 3;
/// Sizes above it are exact in a double no more.
constexpr double kLargestSize = 9e15;

/// Beyond it is no more than such a share of all guesses' weight.
constexpr double kUnlikely = 0.02;

/// Growth with the size, relative to the last peak's: a power, or a line and a square.
struct Shape {
  double exponent;
  double bend;  ///< the square's share; 0: a power
  double weight;

  [[nodiscard]] double at(double size) const {
    return bend == 0 ? std::pow(size, exponent) : (1 - bend) * size + bend * size * size;
  }
  [[nodiscard]] double size_at(double value) const {
    if (bend == 0) return std::pow(value, 1 / exponent);
    const double half = (1 - bend) / (2 * bend);
    return std::sqrt(half * half + value / bend) - half;
  }
};

std::vector<Shape> make_shapes() {
  std::vector<Shape> shapes{{1, 0, 1}};
  for (int tenths = 5; tenths <= 26; ++tenths) shapes.push_back({tenths / 10.0, 0, 0.03});
  // The square may be a small part so far, and the largest part of later sizes.
  for (const double bend : {0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8}) shapes.push_back({1, bend, 0.05});
  return shapes;
}

/// The nearest peak that rounding hardly affects: earlier ones may follow another curve.
const BatchPeak& earlier_peak(const std::vector<BatchPeak>& peaks) {
  const auto found = std::find_if(peaks.rbegin(), peaks.rend(), [&](const BatchPeak& peak) {
    return peaks.back().bytes - peak.bytes >= 8 * kPeakRounding;
  });
  return found == peaks.rend() ? peaks.front() : *found;
}

}  // namespace

BatchSearch::BatchSearch(BatchSearchOptions options)
    : options_(options),
      largest_(std::floor((options.maximum ? static_cast<double>(*options.maximum) : kLargestSize) /
                          static_cast<double>(options.multiple_of))),
      fails_(kNone) {}

Result<BatchSearch> BatchSearch::create(BatchSearchOptions options) {
  if (options.start == 0) return Error{"start: a batch has 1 sample or more"};
  if (options.multiple_of == 0) return Error{"multiple_of: 1 or more"};
  if (options.maximum && *options.maximum < options.multiple_of) {
    return Error{"maximum: less than the smallest multiple that is asked for"};
  }
  if (!(options.margin > 0 && options.margin < 1)) return Error{"margin: a share between 0 and 1"};
  if (options.probes == 0) return Error{"probes: 1 or more"};
  return BatchSearch(options);
}

void BatchSearch::report(std::size_t size, bool fits, std::optional<std::uint64_t> peak_bytes) {
  ++probes_;
  suppose(size, fits, peak_bytes);
}

void BatchSearch::suppose(std::size_t size, bool fits, std::optional<std::uint64_t> peak_bytes) {
  const double units = static_cast<double>(size) / static_cast<double>(options_.multiple_of);
  if (!fits) {
    fails_ = std::min(fails_, units);
    if (fits_ < fails_) return;
    // A size that fitted once does not any more: steps need more than the first one did.
    peaks_.erase(std::find_if(peaks_.begin(), peaks_.end(), [&](const BatchPeak& peak) { return peak.size >= fails_; }),
                 peaks_.end());
    fits_ = peaks_.empty() ? 0 : peaks_.back().size;
    return;
  }
  fits_ = std::max(fits_, units);
  if (!peak_bytes) return;
  const auto place =
      std::find_if(peaks_.begin(), peaks_.end(), [&](const BatchPeak& peak) { return peak.size >= units; });
  if (place != peaks_.end() && place->size == units) return;
  peaks_.insert(place, {units, static_cast<double>(*peak_bytes)});
}

bool BatchSearch::is_close(double low, double bound) const {
  return low >= (1 - options_.margin) * std::floor(bound);
}

bool BatchSearch::can_guess() const {
  return options_.limit_bytes && shows_growth(peaks_) && peaks_.back().size == fits_;
}

/// A size above the largest that fits, while no failing size is known.
double BatchSearch::beyond() const {
  if (!options_.limit_bytes || peaks_.empty() || peaks_.back().size != fits_) return kGrowthWithoutPeaks * fits_;
  if (peaks_.size() == 1) return kFirstGrowth * fits_;
  if (can_guess()) return peaks_.size() > 2 ? guessed() : std::min(guessed(), kBlindGrowth * fits_);
  // Limited by a line with growth that the rounding has hidden.
  const BatchPeak& first = peaks_.front();
  const double growth = std::max(0.0, peaks_.back().bytes - first.bytes) + kPeakRounding;
  const double line = fits_ + std::max(0.0, limit() - peaks_.back().bytes) / growth * (fits_ - first.size);
  return std::clamp(line, 2 * fits_, kBlindGrowth * fits_);
}

/// A size from the guesses that no failure has refuted; without any, the middle of the bounds.
double BatchSearch::guessed() const {
  std::vector<BatchGuess> left;
  double all = 0;
  if (can_guess()) left = guess_sizes(peaks_, limit());
  left.erase(std::find_if(left.begin(), left.end(), [&](const BatchGuess& guess) { return guess.size >= fails_; }),
             left.end());
  if (left.empty()) return std::sqrt(fits_ * fails_);
  for (const BatchGuess& guess : left) all += guess.weight;
  double size = 0;
  double below = 0;
  for (const BatchGuess& guess : left) {
    below += guess.weight;
    size = guess.size * (1 - options_.margin / 2);
    if (below >= (fails_ < kNone ? kBelowBounded : kBelowOpen) * all) break;
  }
  // A size that fits there ends the search, as does a failure below if the guess has been reached already.
  if (fails_ < kNone) size = std::min(size, std::ceil((1 - options_.margin) * (fails_ - 1)));
  if (size < fits_ * (1 + options_.margin / 2)) size = std::floor(fits_ / (1 - options_.margin)) + 1;
  return size < fails_ * (1 - options_.margin / 2) ? size : std::sqrt(fits_ * fails_);
}

/// As long as halving alone brings the bounds together with the probes that are left, no probe may spoil that.
double BatchSearch::within_reach(double size) const {
  const auto left = static_cast<double>(options_.probes - probes_);
  const double reach = std::pow(1 - options_.margin, -std::exp2(left - 1));
  const double low = fails_ / reach;
  const double high = fits_ * reach;
  if (is_close(fits_, size - 1)) return size;  // a failure ends it
  return low > 1.5 * high ? size : std::clamp(size, std::min(low, high), std::max(low, high));
}

std::optional<std::size_t> BatchSearch::next() const {
  if (result().end != BatchSearchEnd::searching) return std::nullopt;
  double size = 0;
  if (probes_ == 0) {
    size = std::ceil(static_cast<double>(options_.start) / static_cast<double>(options_.multiple_of));
  } else if (fits_ == 0) {
    size = std::sqrt(fails_);
  } else if (options_.limit_bytes && peaks_.size() == 1 && fits_ >= kFirstGrowth && fails_ > kFewSizes * fits_ &&
             fails_ < kNone) {
    size = fits_ / kFirstGrowth;  // if the bounds are far apart, a second peak is more informative than their middle
  } else if (fails_ < kNone) {
    size = std::clamp(std::floor(within_reach(guessed())), fits_ + 1, fails_ - 1);
  } else {
    size = std::max(std::floor(beyond()), fits_ + 1);
  }
  size = std::clamp(std::floor(size), 1.0, largest_);
  return static_cast<std::size_t>(size) * options_.multiple_of;
}

BatchSearchResult BatchSearch::result() const {
  BatchSearchResult result;
  result.probes = probes_;
  if (fits_ > 0) result.batch_size = static_cast<std::size_t>(fits_) * options_.multiple_of;
  if (fails_ < kNone) result.does_not_fit = static_cast<std::size_t>(fails_) * options_.multiple_of;
  if (peaks_.size() > 1) {
    const BatchPeak& first = peaks_.front();
    const BatchPeak& last = peaks_.back();
    const double slope = (last.bytes - first.bytes) / (last.size - first.size);
    result.slope_bytes = slope / static_cast<double>(options_.multiple_of);
    result.intercept_bytes = first.bytes - slope * first.size;
  }
  if (fits_ >= largest_) {
    result.end = BatchSearchEnd::maximum_fits;
  } else if (fits_ == 0 && fails_ <= 1) {
    result.end = BatchSearchEnd::nothing_fits;
  } else if (fits_ > 0 && ((fails_ < kNone && is_close(fits_, fails_ - 1)) || fits_ + 1 >= fails_ ||
                           (can_guess() && is_close(fits_, largest_guess(peaks_, limit()))))) {
    result.end = BatchSearchEnd::found;
  } else if (probes_ >= options_.probes) {
    result.end = BatchSearchEnd::probes_used;
  }
  return result;
}

bool shows_growth(const std::vector<BatchPeak>& peaks) {
  return peaks.size() > 1 && peaks.back().bytes - earlier_peak(peaks).bytes >= 2 * kPeakRounding;
}

std::vector<BatchGuess> guess_sizes(const std::vector<BatchPeak>& peaks, double limit_bytes) {
  static const std::vector<Shape> shapes = make_shapes();
  const BatchPeak& last = peaks.back();
  const BatchPeak& from = earlier_peak(peaks);
  const double remaining = std::max(0.0, limit_bytes - last.bytes);
  std::vector<BatchGuess> guesses;
  guesses.reserve(shapes.size());
  for (const Shape& shape : shapes) {
    const double scale = (last.bytes - from.bytes) / (1 - shape.at(from.size / last.size));
    double weight = shape.weight;
    for (const BatchPeak& peak : peaks) {
      const double below = last.bytes - peak.bytes;
      const double error = below - scale * (1 - shape.at(peak.size / last.size));
      const double expected = kPeakRounding + kPeakNoise * std::abs(below);
      weight /= 1 + (error / expected) * (error / expected);
    }
    guesses.push_back({last.size * shape.size_at(1 + remaining / scale), weight});
  }
  std::sort(guesses.begin(), guesses.end(), [](const BatchGuess& a, const BatchGuess& b) { return a.size < b.size; });
  return guesses;
}

double largest_guess(const std::vector<BatchPeak>& peaks, double limit_bytes) {
  if (peaks.size() < 3) return std::numeric_limits<double>::infinity();
  const std::vector<BatchGuess> guesses = guess_sizes(peaks, limit_bytes);
  double all = 0;
  for (const BatchGuess& guess : guesses) all += guess.weight;
  double above = 0;
  auto guess = guesses.rbegin();
  for (; guess + 1 != guesses.rend(); ++guess) {
    above += guess->weight;
    if (above >= kUnlikely * all) break;
  }
  return guess->size * (1 + kPeakNoise);
}

Result<BatchSearchResult> find_batch_size(const cuda::Driver& driver, cuda::Context context,
                                          const std::function<bool(std::size_t size)>& fits,
                                          const BatchSearchOptions& options) {
  auto search = BatchSearch::create(options);
  if (!search) return search.error();
  // Peaks are relative to the initially free memory: memory that a step keeps (workspaces, optimizer state) counts.
  const auto before = free_memory(driver, context);
  if (!before) return before.error();
  search->set_limit(before->free_bytes);
  while (const auto size = search->next()) {
    LowestFreeMemory meter(driver, context);
    const bool fitted = fits(*size);
    const std::optional<std::uint64_t> lowest = meter.stop();
    std::optional<std::uint64_t> peak;
    if (fitted && lowest) peak = before->free_bytes - std::min(before->free_bytes, *lowest);
    search->report(*size, fitted, peak);
  }
  return search->result();
}

}  // namespace tidemark
