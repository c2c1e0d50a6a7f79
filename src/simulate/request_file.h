// Requests as the Python program that replays them reads them (replay.py).
//
// The file begins with the 8 bytes "TMREQS1\n" and the number of slots (64 bits). Pairs of signed 64-bit numbers
// follow, little-endian: an operand, and a size or what else is done.
//
//   operand  second  meaning
//   slot     >= 0    allocate so many bytes, and keep the pointer in the slot
//   slot     -1      free what is in the slot
//   bytes    -2      an allocation that failed when it was recorded
//   0        -3      empty the cache
//   device   -4      what follows is on this device (at first 0)
//   stream   -5      ... on this stream (at first 0, the default stream)
//   pool     -6      ... in this private pool (at first 0, the default pool)
//   pool     -8      the program gave this private pool up: its free segments can be released
//   device   -7      the device's recorded peak of allocated memory: the state of the allocator is asked for
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "simulate/requests.h"

namespace tidemark {

/// Sizes above this, of which no device has so much, are written as this.
inline constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 50;

Result<void> write_request_file(const Store& store, const Requests& requests, const std::string& path);

/// The time of the request that the pair of this number, from 0, stands for; none where there is no such pair.
[[nodiscard]] std::optional<std::uint64_t> time_of_pair(const Store& store, const Requests& requests,
                                                        std::uint64_t pair);

}  // namespace tidemark
