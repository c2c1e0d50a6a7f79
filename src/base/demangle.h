// Names of C++, as its source has them.
#pragma once

#include <string>

namespace tidemark {

/// "f(int)" for "_Z1fi"; anything that is no mangled name stays as it is. That of a type, as std::type_info has it, is
/// one with "_Z" in front.
[[nodiscard]] std::string demangle(const std::string& name);

}  // namespace tidemark
