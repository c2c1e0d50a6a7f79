#include "phantom/libraries/nccl_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tidemark::phantom {
namespace {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

float widen(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

float widen(Half value) {
  const int exponent = (value.bits >> 10) & 31;
  const int fraction = value.bits & 1023;
  const float sign = (value.bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return sign * (fraction != 0 ? NAN : INFINITY);
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

template <typename Number>
Number widen(Number value) {
  return value;
}

void narrow(float value, BFloat16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  to.bits = std::isnan(value) ? 0x7fc0 : static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void narrow(float value, Half& to) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float size = std::fabs(value);
  if (std::isnan(value)) {
    to.bits = 0x7e00;
  } else if (size >= 65520.0F) {
    to.bits = sign | 0x7c00;
  } else if (size < 6.103515625e-5F) {  // the smallest normal number
    to.bits = static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(size, 24))));
  } else {
    int exponent = 0;
    const float fraction = std::frexp(size, &exponent);  // in [0.5, 1)
    // A fraction that rounds up to 2048 carries into the exponent, as intended.
    to.bits = static_cast<std::uint16_t>(sign + ((exponent + 13) << 10) +
                                         static_cast<int>(std::nearbyint(std::ldexp(fraction, 11))));
  }
}

template <typename Number>
void narrow(Number value, Number& to) {
  to = value;
}

template <typename Number>
Number combine(Number a, Number b, Reduction::Kind kind) {
  switch (kind) {
    case Reduction::product:
      return static_cast<Number>(a * b);
    case Reduction::maximum:
      return std::max(a, b);
    case Reduction::minimum:
      return std::min(a, b);
    default:
      return static_cast<Number>(a + b);
  }
}

template <typename Number>
Number scale(Number value, double factor) {
  return factor == 1 ? value : static_cast<Number>(static_cast<double>(value) * factor);
}

template <typename Element>
bool reduce_elements(void* to, const void* const* from, int ranks, std::size_t count, const Reduction& reduction) {
  const auto load = [&](int rank, std::size_t index) {
    Element value;
    std::memcpy(&value, static_cast<const char*>(from[rank]) + index * sizeof value, sizeof value);
    return scale(widen(value), reduction.factor);
  };
  for (std::size_t index = 0; index < count; ++index) {
    auto total = load(0, index);
    for (int rank = 1; rank < ranks; ++rank) total = combine(total, load(rank, index), reduction.kind);
    if (reduction.kind == Reduction::average)
      total = static_cast<decltype(total)>(total / static_cast<decltype(total)>(ranks));
    Element result;
    narrow(total, result);
    std::memcpy(static_cast<char*>(to) + index * sizeof result, &result, sizeof result);
  }
  return true;
}

// Calls `visit` with an element of the type; returns its result, or `otherwise`.
template <typename Visit, typename Result>
Result visit_type(int type, Result otherwise, Visit visit) {
  switch (type) {  // ncclDataType_t
    case 0:
      return visit(std::int8_t{});
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::int32_t{});
    case 3:
      return visit(std::uint32_t{});
    case 4:
      return visit(std::int64_t{});
    case 5:
      return visit(std::uint64_t{});
    case 6:
      return visit(Half{});
    case 7:
      return visit(float{});
    case 8:
      return visit(double{});
    case 9:
      return visit(BFloat16{});
    default:
      return otherwise;
  }
}

}  // namespace

std::optional<std::size_t> element_size(int type) {
  if (type == 10 || type == 11) return 1;  // float8e4m3, float8e5m2
  return visit_type(type, std::optional<std::size_t>(), [](auto element) { return std::optional(sizeof element); });
}

bool reduce(void* to, const void* const* from, int ranks, std::size_t count, int type, const Reduction& reduction) {
  return visit_type(
      type, false, [&](auto element) { return reduce_elements<decltype(element)>(to, from, ranks, count, reduction); });
}

double element(const void* from, int type) {
  return visit_type(type, 1.0, [from](auto element) {
    std::memcpy(&element, from, sizeof element);
    return static_cast<double>(widen(element));
  });
}

}  // namespace tidemark::phantom
