// 128-bit arithmetic, an extension of GCC and clang to ISO C++.
#pragma once

namespace tidemark {

__extension__ using uint128 = unsigned __int128;

}  // namespace tidemark
