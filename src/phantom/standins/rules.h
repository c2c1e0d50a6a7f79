// Which libraries the phantom GPU stands in for, and what it does with functions that only put work into a stream.
#pragma once

#include <optional>
#include <string>

#include "phantom/standins/library_writer.h"

namespace tidemark {

/// A library of NVIDIA's by the beginning of its name.
struct VendorLibrary {
  const char* stem;    ///< "libcudart": what comes before ".so"
  const char* prefix;  ///< of its functions, where they have no version in some release; empty where they always have
};

/// The library of a SONAME, or none for those that are not NVIDIA's.
[[nodiscard]] const VendorLibrary* vendor_library(const std::string& soname);
/// The library that a function without a version belongs to, by its name; none for functions that are not NVIDIA's.
[[nodiscard]] const VendorLibrary* vendor_library_of_function(const std::string& function);

/// What a stand-in does with a function that libtidemark_phantom.so does not answer.
[[nodiscard]] StandinFunction standin_function(const std::string& function);

}  // namespace tidemark
