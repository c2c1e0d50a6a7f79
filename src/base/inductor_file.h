// Files that torch.compile's code generator, inductor, writes.
#pragma once

#include <cstddef>

namespace tidemark {

/// Whether a path is of Python code that inductor generated: named by a hash of its content, 'c' and 51 digits of base
/// 32, in a folder named by the first two of these: ".../pz/cpzxnl3....py". The user may choose the parent folder
/// (TORCHINDUCTOR_CACHE_DIR). Needs no C++ runtime.
[[nodiscard]] constexpr bool is_inductor_file(const char* path, std::size_t length) noexcept {
  constexpr char kSuffix[] = {'.', 'p', 'y'};
  constexpr std::size_t kHash = 52;
  constexpr std::size_t kFolder = 3;  // with its slash
  if (length < kFolder + kHash + sizeof(kSuffix)) return false;
  const char* suffix = path + length - sizeof(kSuffix);
  for (const char expected : kSuffix) {
    if (*suffix++ != expected) return false;
  }
  const char* hash = path + length - sizeof(kSuffix) - kHash;
  for (std::size_t index = 1; index < kHash; ++index) {
    const char digit = hash[index];
    if ((digit < 'a' || digit > 'z') && (digit < '2' || digit > '7')) return false;
  }
  return hash[0] == 'c' && hash[-1] == '/' && hash[-2] == hash[2] && hash[-3] == hash[1];
}

}  // namespace tidemark
