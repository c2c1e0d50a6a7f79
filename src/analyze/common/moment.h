// "At the peak", "at the end", "after 12.5s": selects a moment, and the blocks alive then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/common/block_filter.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct Moment {
  enum class Kind : std::uint8_t {
    peak,   ///< for each device, the first moment of its maximum of allocated bytes
    end,    ///< after the last event
    time,   ///< time_ns after the start
    share,  ///< this share of the recording's duration
  };
  Kind kind = Kind::peak;
  std::uint64_t time_ns = 0;
  double share = 0;  ///< 0 to 1
};

/// Reads "peak", "end", a time from the start with its unit, as parse_time() does ("12.5s", "2h"), or a share of the
/// run
/// ("40%").
Result<Moment> parse_moment(std::string_view text);

/// Accepts the input of parse_moment(), a training step ("step:20", counted from 0 as in `leaks`), or a mark: its name,
/// "mark:NAME" if that has another meaning, and "NAME@3" for its third time. Fails, listing the available ones, if
/// there is no such mark or step.
Result<Moment> find_moment(const Store& store, std::string_view text);

/// Whether find_moment() could find it in some recording: only a recording determines the names.
[[nodiscard]] bool may_be_a_moment(std::string_view text);

/// The text by which find_moment() finds a mark of this name: the name itself, or "mark:NAME" if the name has another
/// meaning.
[[nodiscard]] std::string moment_of_mark(std::string_view name);

/// A Moment resolved for one device.
struct ResolvedMoment {
  std::optional<std::uint64_t> time_ns;  ///< nullopt: the peak of a device on which nothing was allocated
  std::uint64_t change_count = 0;        ///< how many of Store::live_changes happened before
  std::uint64_t unrecorded_bytes = 0;    ///< allocated by the allocator's own total, but in no recorded block
};

[[nodiscard]] ResolvedMoment resolve_moment(const Store& store, const Moment& moment, std::size_t device);

/// The blocks of a device that are alive after `change_count` live changes, in order of birth.
[[nodiscard]] std::vector<BlockId> live_blocks(const Store& store, std::size_t device, std::uint64_t change_count);

/// Memory of a device at a moment, restricted to the selected blocks.
struct HeldBlocks {
  std::optional<std::uint64_t> time_ns;  ///< as ResolvedMoment::time_ns
  std::vector<BlockId> blocks;           ///< in order of birth
  std::uint64_t unrecorded_bytes = 0;    ///< as in ResolvedMoment; 0 if a filter selects some blocks
};
[[nodiscard]] HeldBlocks held_blocks(const Store& store, const Moment& moment, std::size_t device,
                                     const BlockFilter& filter);

/// How many blocks of each device were there before the first event (cut snapshots have some). The store has them
/// first, and they are not among the device's allocations.
[[nodiscard]] std::vector<std::uint64_t> blocks_at_start(const Store& store);

}  // namespace tidemark
