// Converts Result to exceptions at the boundary of the library.
#pragma once

#include <tidemark/error.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace tidemark::v1 {

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw v1::Error(result.error().message);
  return std::move(*result);
}

inline void check(const Result<void>& result) {
  if (!result) throw v1::Error(result.error().message);
}

/// Path of the tidemark program: beside this library, else on PATH. Throws Error if there is none.
[[nodiscard]] std::string own_program();
/// Looks for programs and files of the analyses beside that program, if there is one.
void use_own_program();

}  // namespace tidemark::v1
