// What snapshots that `tidemark export` writes have for frames that PyTorch has none for.
#pragma once

#include <string_view>

namespace tidemark {

/// The file of Python frames without one: calls of modules, autograd nodes, and what runs these.
inline constexpr std::string_view kNoPythonFile = "<PyTorch>";

}  // namespace tidemark
