// NCCL's element types, and reductions over them.
#pragma once

#include <cstddef>
#include <optional>

namespace tidemark::phantom {

/// Bytes of an element of an ncclDataType_t; std::nullopt for an unknown type.
[[nodiscard]] std::optional<std::size_t> element_size(int type);

/// An ncclRedOp_t, with the factor of an operation created by ncclRedOpCreatePreMulSum.
struct Reduction {
  enum Kind : int { sum, product, maximum, minimum, average };
  Kind kind = sum;
  double factor = 1;
};

/// Reduces `count` elements of `type` in each of `ranks` buffers into `to`, which may be one of them. False for types
/// without arithmetic here (eight-bit floating point).
[[nodiscard]] bool reduce(void* to, const void* const* from, int ranks, std::size_t count, int type,
                          const Reduction& reduction);

/// A single element as a number, for the factor of a reduction.
[[nodiscard]] double element(const void* from, int type);

}  // namespace tidemark::phantom
