// Other libraries that may be loaded into the program: CUPTI, profilers, preloaded libraries.
#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/diagnosis.h"
#include "launch/environment.h"

namespace tidemark {
namespace {

/// The first path that matches one of the shell patterns; empty if there is none.
std::string first_match(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    glob_t found{};
    const int failed = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::string path = failed == 0 && found.gl_pathc > 0 ? found.gl_pathv[0] : "";
    ::globfree(&found);
    if (!path.empty()) return path;
  }
  return "";
}

}  // namespace

void check_cupti(Diagnosis& diagnosis) {
  std::vector<std::string> patterns;
  if (diagnosis.python && !diagnosis.python->torch_folder.empty()) {
    const std::string& torch = diagnosis.python->torch_folder;
    patterns = {torch + "/lib/libcupti*.so*", torch + "/../nvidia/*/lib/libcupti.so*"};
  }
  patterns.insert(patterns.end(), {"/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
                                   "/usr/local/cuda*/targets/*/lib/libcupti.so*", "/usr/lib/*-linux-gnu/libcupti.so*"});
  const std::string path = first_match(patterns);
  if (!path.empty()) {
    diagnosis.checks.push_back({"cupti", Finding::cupti_found, CheckStatus::ok, path});
  } else if (has_nvidia_gpu(diagnosis.inventory)) {
    diagnosis.checks.push_back({"cupti", Finding::cupti_missing, CheckStatus::warning, {}});
  } else {
    diagnosis.checks.push_back({"cupti", Finding::cupti_not_needed, CheckStatus::ok, {}});
  }
}

void check_injections(Diagnosis& diagnosis) {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    for (const char* start : {"CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "NSYS_", "NV_COMPUTE_PROFILER_"}) {
      if (text.starts_with(start)) found.push_back(text);
    }
  }
  std::sort(found.begin(), found.end());
  diagnosis.checks.push_back(found.empty() ? Check{"injection", Finding::injection_none, CheckStatus::ok, {}}
                                           : Check{"injection", Finding::injection_found, CheckStatus::warning,
                                                   fmt::format("{}", fmt::join(found, " "))});
}

void check_preload(Diagnosis& diagnosis) {
  const auto library = find_preload_library();
  diagnosis.checks.push_back(
      library
          ? Check{"preload_library", Finding::preload_library_found, CheckStatus::ok, *library}
          : Check{"preload_library", Finding::preload_library_missing, CheckStatus::problem, library.error().message});
  const char* value = std::getenv("LD_PRELOAD");
  const std::string list = value == nullptr ? "" : value;
  Check check{"ld_preload", list.empty() ? Finding::ld_preload_unset : Finding::ld_preload_compatible, CheckStatus::ok,
              list};
  for (const char* other : {"libtidemark_preload", "libmemray", "libheaptrack"}) {
    if (list.find(other) == std::string::npos) continue;
    check.finding = Finding::ld_preload_profiler;
    check.status = CheckStatus::warning;
  }
  diagnosis.checks.push_back(std::move(check));
}

}  // namespace tidemark
