#include "runtime/memory/batch_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
/// Peaks are rounded up by as much: PyTorch's allocator reserves segments of 20 MiB, others round less.
constexpr double kRounding = 20.0 * (1 << 20);
/// How much a size grows while its memory cannot be told from the rounding, or is not known.
constexpr double kBlindGrowth = 16;
constexpr double kGrowthWithoutPeaks = 4;
/// Sizes above it are exact in a double no more.
constexpr double kLargestSize = 9e15;

}  // namespace

BatchSearch::BatchSearch(BatchSearchOptions options)
    : options_(options),
      largest_(options.maximum ? std::floor(static_cast<double>(*options.maximum / options.multiple_of))
                               : std::floor(kLargestSize / static_cast<double>(options.multiple_of))),
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
  const double units = static_cast<double>(size) / static_cast<double>(options_.multiple_of);
  ++probes_;
  if (!fits) {
    fails_ = std::min(fails_, units);
    ++failures_;
    ++failures_in_a_row_;
    return;
  }
  failures_in_a_row_ = 0;
  fits_ = std::max(fits_, units);
  if (!peak_bytes) return;
  const auto place = std::find_if(peaks_.begin(), peaks_.end(), [&](const Peak& peak) { return peak.size >= units; });
  if (place != peaks_.end() && place->size == units) return;
  peaks_.insert(place, {units, static_cast<double>(*peak_bytes)});
}

bool BatchSearch::is_close(double low, double bound) const {
  return low >= (1 - options_.margin) * std::floor(bound);
}

/// Along the line through the last peak and that of `from`, or the parabola through one more where the use grows faster
/// and faster.
double BatchSearch::likely_size(std::size_t from, double remaining) const {
  const Peak& last = peaks_.back();
  const Peak& middle = peaks_[from];
  const double slope = (last.bytes - middle.bytes) / (last.size - middle.size);
  if (slope <= 0) return kNone;
  const double line = last.size + remaining / slope;
  if (from == 0) return line;
  const Peak& first = peaks_[from - 1];
  if (middle.bytes - first.bytes < 2 * kRounding) return line;
  const double before = (middle.bytes - first.bytes) / (middle.size - first.size);
  if (slope < 1.1 * before) return line;
  const double bend = (slope - before) / (last.size - first.size);
  const double steepness = slope + bend * (last.size - middle.size);
  return last.size + (std::sqrt(steepness * steepness + 4 * bend * remaining) - steepness) / (2 * bend);
}

std::optional<BatchSearch::Forecast> BatchSearch::forecast() const {
  if (!options_.limit_bytes || peaks_.size() < 2 || peaks_.back().size != fits_) return std::nullopt;
  const Peak& last = peaks_.back();
  const double remaining = std::max(0.0, static_cast<double>(*options_.limit_bytes) - last.bytes);
  // The nearest peak that rounding has not much to do with: what came before it may be another slope.
  std::size_t from = 0;
  for (std::size_t index = 0; index + 1 < peaks_.size(); ++index) {
    if (last.bytes - peaks_[index].bytes >= 8 * kRounding) from = index;
  }
  const double sizes = last.size - peaks_[from].size;
  const double bytes = std::max(0.0, last.bytes - peaks_[from].bytes);
  Forecast forecast{};
  forecast.visible = bytes >= 2 * kRounding;
  forecast.likely = likely_size(from, remaining);
  forecast.at_least = std::min(forecast.likely, last.size + remaining * sizes / (bytes + kRounding));
  // The flattest part there was may go on: a step between two peaks makes the line through them too steep.
  double flattest = kNone;
  for (std::size_t index = 0; index + 1 < peaks_.size(); ++index) {
    for (std::size_t next = index + 1; next < peaks_.size(); ++next) {
      const double difference = peaks_[next].bytes - peaks_[index].bytes;
      if (difference < 2 * kRounding) continue;
      flattest = std::min(flattest, (difference - kRounding) / (peaks_[next].size - peaks_[index].size));
    }
  }
  forecast.at_most = flattest == kNone ? kNone : last.size + (remaining + kRounding) / flattest;
  return forecast;
}

/// A size between the largest that fits and the smallest that does not.
double BatchSearch::between(double likely) const {
  // Twice too large: the use is steeper than a line, and the sizes may be of another order.
  if (failures_in_a_row_ > 1 && fails_ > 4 * fits_) return std::sqrt(std::max(1.0, fits_) * fails_);
  // A size that fits has confirmed the forecast that failed: it was hardly too high.
  const bool near = likely >= fails_ && likely < 1.25 * fails_ && failures_ == 1 && failures_in_a_row_ == 0;
  return fits_ + (near ? 0.75 : 0.5) * (fails_ - fits_);
}

/// A size above the largest that fits, while none is known that does not.
double BatchSearch::beyond(const std::optional<Forecast>& forecast) const {
  if (!forecast) return peaks_.size() == 1 && options_.limit_bytes ? 2 * fits_ : kGrowthWithoutPeaks * fits_;
  return std::clamp(forecast->at_least, 2 * fits_, kBlindGrowth * fits_);
}

std::optional<std::size_t> BatchSearch::next() const {
  if (result().end != BatchSearchEnd::searching) return std::nullopt;
  const auto multiple = static_cast<double>(options_.multiple_of);
  double size = 0;
  if (probes_ == 0) {
    size = std::ceil(static_cast<double>(options_.start) / multiple);
  } else if (fits_ == 0) {
    size = std::sqrt(fails_);
  } else {
    const std::optional<Forecast> known = forecast();
    const double likely = known && known->visible ? known->likely : kNone;
    if (likely < kNone) {
      size = std::floor(std::min(likely * (1 - options_.margin / 2), known->at_least));
      // There already: a size that ends the search if it does not fit.
      if (size < fits_ * (1 + options_.margin / 2)) size = std::floor(fits_ / (1 - options_.margin)) + 1;
      if (size >= fails_) size = between(likely);
    } else {
      size = fails_ < kNone ? between(likely) : beyond(known);
    }
    size = std::clamp(std::floor(size), fits_ + 1, fails_ - 1);
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
    const Peak& first = peaks_.front();
    const Peak& last = peaks_.back();
    const double slope = (last.bytes - first.bytes) / (last.size - first.size);
    result.slope_bytes = slope / static_cast<double>(options_.multiple_of);
    result.intercept_bytes = first.bytes - slope * first.size;
  }
  const std::optional<Forecast> known = forecast();
  if (fits_ >= largest_) {
    result.end = BatchSearchEnd::maximum_fits;
  } else if (fits_ == 0 && fails_ <= 1) {
    result.end = BatchSearchEnd::nothing_fits;
  } else if (fits_ > 0 && ((fails_ < kNone && is_close(fits_, fails_ - 1)) || fits_ + 1 >= fails_ ||
                           (known && known->at_most < kNone && is_close(fits_, known->at_most)))) {
    result.end = BatchSearchEnd::found;
  } else if (probes_ >= options_.probes) {
    result.end = BatchSearchEnd::probes_used;
  }
  return result;
}

}  // namespace tidemark
