// 128-bit arithmetic, which GCC and clang have and ISO C++ does not.
#pragma once

namespace tidemark {

__extension__ using uint128 = unsigned __int128;

}  // namespace tidemark
