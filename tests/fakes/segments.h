// Source of the segments of the stand-in for libc10_cuda: none (segments_none.cpp), or the driver
// (driver/segments_driver.cpp).
#pragma once

#include <cstdint>

/// `bytes` more, a multiple of 2 MiB. Called with the allocator's lock held.
void take_segments(int type, int index, std::uint64_t bytes);
/// All of a device's.
void give_back_segments(int type, int index);
