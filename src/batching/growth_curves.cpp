#include "batching/growth_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark {
namespace {

/// Beyond it is no more than such a share of all guesses' weight.
constexpr double kUnlikely = 0.02;

/// Growth with the size, as a share of that of the last peak: a power, or a line and a square.
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
  // The square may be little of what is seen so far and most of what is to come.
  for (const double bend : {0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8}) shapes.push_back({1, bend, 0.05});
  return shapes;
}

/// The nearest that rounding has not much to do with: what came before may be another curve.
const BatchPeak& earlier_peak(const std::vector<BatchPeak>& peaks) {
  const auto found = std::find_if(peaks.rbegin(), peaks.rend(), [&](const BatchPeak& peak) {
    return peaks.back().bytes - peak.bytes >= 8 * kPeakRounding;
  });
  return found == peaks.rend() ? peaks.front() : *found;
}

}  // namespace

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

}  // namespace tidemark
