// Annotations by the program: named points and ranges in time, and text attached to blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace tidemark {

/// A named range of time, or a point in time (begin and end are equal).
struct AnnotatedRange {
  StringId name;
  std::uint64_t begin_ns = 0;
  std::optional<std::uint64_t> end_ns;  ///< nullopt: never ended
};

/// Pairs begin and end marks, in order of their begin. Unmatched ends are dropped.
[[nodiscard]] std::vector<AnnotatedRange> annotated_ranges(const Definitions& definitions);

/// For each block the text attached to it (the latest), else the name of the innermost range in which it was allocated,
/// i.e. the open range that began last, on any thread or device: backward passes allocate on separate threads. Invalid
/// if there is none.
[[nodiscard]] std::vector<StringId> annotations_of_blocks(const Store& store);

/// When the mark or range `wanted` begins: "NAME" for its first time, "NAME@3" for its third. Fails, listing the
/// available names, if there is none.
[[nodiscard]] Result<std::uint64_t> find_mark(const Overview& overview, std::string_view wanted);

}  // namespace tidemark
