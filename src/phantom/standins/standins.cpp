#include "phantom/standins/standins.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "phantom/standins/needed_symbols.h"
#include "phantom/standins/rules.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

struct NeededLibrary {
  std::set<std::string> functions;  // that are looked up in it
  std::optional<std::string> version;
};
using Needed = std::map<std::string, NeededLibrary>;  // by SONAME

void collect(const NeededSymbols& symbols, Needed& needed) {
  std::map<const VendorLibrary*, std::string> without_versions;
  for (const std::string& library : symbols.libraries) {
    const VendorLibrary* const vendor = vendor_library(library);
    if (vendor == nullptr) continue;
    needed[library];
    without_versions[vendor] = library;
  }
  for (const NeededSymbol& symbol : symbols.symbols) {
    if (!symbol.library.empty()) {
      if (vendor_library(symbol.library) != nullptr) needed[symbol.library].functions.insert(symbol.name);
      continue;
    }
    const auto found = without_versions.find(vendor_library_of_function(symbol.name));
    if (found != without_versions.end()) needed[found->second].functions.insert(symbol.name);
  }
  for (const auto& [library, version] : symbols.versions)
    if (vendor_library(library) != nullptr) needed[library].version = version;
}

std::vector<std::string> shared_libraries(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().find(".so") != std::string::npos) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Result<std::vector<std::string>> write_standins(const std::string& folder, const std::string& torch_folder,
                                                const std::vector<std::string>& others, const std::string& phantom) {
  std::vector<std::string> libraries = shared_libraries(torch_folder + "/lib");
  if (libraries.empty())
    return Error{fmt::format("{}/lib: has no libraries; is PyTorch installed there?", torch_folder)};
  libraries.insert(libraries.end(), others.begin(), others.end());
  Needed needed;
  for (const std::string& path : libraries)
    if (const Result<NeededSymbols> symbols = read_needed_symbols(path)) collect(*symbols, needed);
  // Opened by name, and so are their functions: which, libc10_cuda.so knows.
  const std::string allocator = torch_folder + "/lib/libc10_cuda.so";
  for (const auto& [library, prefix] : {std::pair{"libcuda.so.1", "cu"}, std::pair{"libnvidia-ml.so.1", "nvml"}}) {
    std::set<std::string>& functions = needed[library].functions;
    for (std::string& name : read_function_names(allocator, prefix)) functions.insert(std::move(name));
  }

  const Result<std::vector<std::string>> exported = read_exported_functions(phantom);
  if (!exported) return exported.error();
  const std::unordered_set<std::string> answered(exported->begin(), exported->end());

  std::vector<std::string> preload = {phantom};
  for (const auto& [soname, what] : needed) {
    const bool versioned = vendor_library(soname)->prefix[0] == '\0';
    StandinLibrary library{soname, what.version.value_or(versioned ? soname : ""), {}};
    for (const std::string& function : what.functions) {
      if (answered.contains(function)) continue;
      library.functions.push_back({function, standin_function(function)});
    }
    const std::string path = fmt::format("{}/{}", folder, soname);
    std::ofstream file(path, std::ios::binary);
    file << write_standin_library(library);
    if (!file.flush()) return Error{fmt::format("{}: cannot be written", path)};
    preload.push_back(path);
  }
  return preload;
}

}  // namespace tidemark
