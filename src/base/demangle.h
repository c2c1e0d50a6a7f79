// Names of C++, as its source has them.
#pragma once

#include <string>

namespace tidemark {

/// "f(int)" for "_Z1fi"; other names are returned unchanged. A type's name, as in std::type_info, needs "_Z" in front.
[[nodiscard]] std::string demangle(const std::string& name);

}  // namespace tidemark
