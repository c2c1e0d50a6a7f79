// Random numbers that are equal for a seed on every machine; the distributions of <random> are not.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace tidemark::detectors {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low = 0, double high = 1) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  /// Equal probability for each factor: for values that range over magnitudes.
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  bool chance(double probability) { return uniform() < probability; }
  int integer(int low, int high) { return low + static_cast<int>(uniform() * (high - low + 1)); }
  /// Deviation 1 (Box and Muller 1958).
  double normal() { return std::sqrt(-2 * std::log(uniform(1e-300, 1))) * std::cos(6.283185307179586 * uniform()); }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[integer(0, static_cast<int>(values.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tidemark::detectors
