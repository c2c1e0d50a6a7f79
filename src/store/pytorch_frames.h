// Names in snapshots of `tidemark export` for frames that PyTorch does not have.
#pragma once

#include <string_view>

namespace tidemark {

/// The file of Python frames without one: calls of modules, autograd nodes, and code that runs these.
inline constexpr std::string_view kNoPythonFile = "<PyTorch>";

}  // namespace tidemark
