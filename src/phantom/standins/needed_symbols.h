// What a library needs from others: the functions that it looks up in NVIDIA's libraries, read from its dynamic symbol
// table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// A function that a library looks up when it is loaded.
struct NeededSymbol {
  std::string name;
  std::string library;  ///< that the symbol's version names ("libcudart.so.13"); empty for symbols without a version
};

struct NeededSymbols {
  std::vector<std::string> libraries;           ///< DT_NEEDED, in their order
  std::map<std::string, std::string> versions;  ///< by library: the version that it must define ("libcudart.so.13")
  std::vector<NeededSymbol> symbols;
};

/// Reads an ELF file of this machine's architecture. An error names the file; a file that is no shared library is one.
/// Reads only headers and symbol tables, of files of any size.
[[nodiscard]] Result<NeededSymbols> read_needed_symbols(const std::string& path);

/// Names of the functions that a library exports.
[[nodiscard]] Result<std::vector<std::string>> read_exported_functions(const std::string& path);

/// Names that a library may look up while it runs: the strings of its data that look like functions of `prefix`
/// ("cuMemCreate" for "cu"). Empty for a file that cannot be read. Reads the whole file.
[[nodiscard]] std::vector<std::string> read_function_names(const std::string& path, const std::string& prefix);

}  // namespace tidemark
