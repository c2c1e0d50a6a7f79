#include "phantom/standins/rules.h"

#include <fnmatch.h>

namespace tidemark {
namespace {

// Longer stems before those that they begin with.
constexpr VendorLibrary kLibraries[] = {
    {"libcudart", ""},
    {"libcublasLt", ""},
    {"libcublas", ""},
    {"libcudnn", ""},
    {"libcusparseLt", "cusparseLt"},
    {"libcusparse", ""},
    {"libcusolver", ""},
    {"libcufft", ""},
    {"libcurand", ""},
    {"libnvrtc", ""},
    {"libnvJitLink", ""},
    {"libnvToolsExt", "nvtx"},
    {"libnccl", "nccl"},
    {"libnvshmem_host", "nvshmem"},
    {"libcufile", "cuFile"},
    {"libcupti", ""},
    {"libnvidia-ml", "nvml"},
    {"libcuda", "cu"},
};

struct Rule {
  const char* pattern;
  StandinFunction what;
};

// Patterns of the shell; the first that matches decides. What matches none fails with its name.
constexpr Rule kRules[] = {
    // Sizes that a program allocates by have to be answered one by one.
    {"*[wW]ork[sS]pace*Size*", StandinFunction::fail},
    {"*[bB]uffer[sS]ize*", StandinFunction::fail},
    {"*GetSize*", StandinFunction::fail},
    {"cu*Get[A-Z]*", StandinFunction::fail},
    {"cublasLt*Create*", StandinFunction::create_handle},
    {"cublasLt*Init", StandinFunction::fail},
    {"cublas*", StandinFunction::succeed},
    {"cudnnCreate*", StandinFunction::create_handle},
    {"cudnnFind*", StandinFunction::fail},
    {"cudnn*", StandinFunction::succeed},
    {"cusparseCreate*", StandinFunction::create_handle},
    {"cusparseDestroy*", StandinFunction::succeed},
    {"cusparseSet*", StandinFunction::succeed},
    {"cusolverDnCreate*", StandinFunction::create_handle},
    {"cusolverDn*", StandinFunction::succeed},
    {"cufftDestroy", StandinFunction::succeed},
    {"cufftSet*", StandinFunction::succeed},
    {"cufftXtExec*", StandinFunction::succeed},
    {"cuptiActivity*", StandinFunction::succeed},
    {"nvtx*", StandinFunction::succeed},
};

bool begins_with_word(const std::string& text, const std::string& stem) {
  return text.starts_with(stem) && (text.size() == stem.size() || text[stem.size()] == '.');
}

}  // namespace

const VendorLibrary* vendor_library(const std::string& soname) {
  for (const VendorLibrary& library : kLibraries)
    if (begins_with_word(soname, library.stem)) return &library;
  return nullptr;
}

const VendorLibrary* vendor_library_of_function(const std::string& function) {
  const std::string name = function.starts_with("pnccl") ? function.substr(1) : function;
  for (const VendorLibrary& library : kLibraries) {
    const std::string prefix = library.prefix;
    if (prefix.empty() || !name.starts_with(prefix)) continue;
    // cuInit is the driver's; cudaMalloc and cublasCreate are not, and their versions say whose they are.
    if (prefix == "cu" && (name.size() < 3 || name[2] < 'A' || name[2] > 'Z')) continue;
    return &library;
  }
  return nullptr;
}

StandinFunction standin_function(const std::string& function) {
  for (const Rule& rule : kRules)
    if (fnmatch(rule.pattern, function.c_str(), 0) == 0) return rule.what;
  return StandinFunction::fail;
}

}  // namespace tidemark
