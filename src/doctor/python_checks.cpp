#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

#include "collect/ring/layout.h"
#include "doctor/diagnosis.h"

namespace tidemark {
namespace {

// As 1000 * major + minor.
constexpr int kOldestTorch = 1013;
constexpr int kNewestTorch = 2015;

Finding find_stacks(const InterpreterFacts& python) {
  if (python.implementation != "cpython") return Finding::stacks_not_cpython;
  if (python.free_threaded) return Finding::stacks_free_threaded;
  if (python.debug) return Finding::stacks_debug_build;
  const bool known = std::find(std::begin(ring::kWalkedPythons), std::end(ring::kWalkedPythons), python.layout) !=
                     std::end(ring::kWalkedPythons);
  return known ? Finding::stacks_supported : Finding::stacks_unknown_version;
}

/// "2.15.0+cu130" as 2015; std::nullopt if it cannot be parsed.
std::optional<int> torch_number(const std::string& version) {
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return std::nullopt;
  return major * 1000 + minor;
}

Finding find_torch(const InterpreterFacts& python) {
  if (python.torch_version.empty()) return Finding::torch_absent;
  const int number = torch_number(python.torch_version).value_or(0);
  if (number < kOldestTorch) return Finding::torch_too_old;
  return number > kNewestTorch ? Finding::torch_untested : Finding::torch_supported;
}

/// The major version of CUDA in `text`, such as "NVIDIA driver 580.1, CUDA 13.0"; 0 if there is none.
int cuda_major(const std::string& text) {
  const std::size_t start = text.find("CUDA ");
  return start == std::string::npos ? 0 : std::atoi(text.c_str() + start + 5);  // NOLINT(cert-err34-c): 0 will do
}

// A driver runs programs built for its CUDA's major version and for older ones (NVIDIA, "CUDA Compatibility").
void check_torch_cuda(const InterpreterFacts& python, Diagnosis& diagnosis) {
  const auto& drivers = diagnosis.inventory.drivers;
  const auto nvidia = std::find_if(drivers.begin(), drivers.end(),
                                   [](const ListedDriver& driver) { return driver.vendor == "nvidia"; });
  if (nvidia == drivers.end() || !has_nvidia_gpu(diagnosis.inventory) || python.torch_version.empty()) return;
  if (python.torch_cuda.empty()) {
    diagnosis.checks.push_back({"torch_cuda", Finding::torch_without_cuda, CheckStatus::warning, {}});
    return;
  }
  const int supported = cuda_major(nvidia->version);
  if (supported == 0 || supported >= cuda_major("CUDA " + python.torch_cuda)) return;
  diagnosis.checks.push_back({"torch_cuda", Finding::torch_cuda_too_new, CheckStatus::warning, nvidia->version,
                              static_cast<std::uint64_t>(supported)});
}

}  // namespace

void check_python(const std::string& program, Diagnosis& diagnosis) {
  // Without a program, the user may record something else later.
  const CheckStatus missing = program.empty() ? CheckStatus::warning : CheckStatus::problem;
  const std::string name = program.empty() ? "python3" : program;
  std::vector<Check>& checks = diagnosis.checks;
  const auto interpreter = interpreter_of(name);
  if (!interpreter) {
    checks.push_back({"python", Finding::interpreter_not_found, missing, name});
    return;
  }
  diagnosis.interpreter = *interpreter;
  const auto python = probe_interpreter(*interpreter);
  if (!python) {
    checks.push_back({"python", Finding::interpreter_failed, missing, python.error().message});
    return;
  }
  diagnosis.python = *python;
  checks.push_back({"python", Finding::interpreter_works, CheckStatus::ok, {}});
  const Finding stacks = find_stacks(*python);
  checks.push_back(
      {"python_stacks", stacks, stacks == Finding::stacks_supported ? CheckStatus::ok : CheckStatus::warning, {}});
  const Finding torch = find_torch(*python);
  checks.push_back({"torch",
                    torch,
                    torch == Finding::torch_supported ? CheckStatus::ok
                    : torch == Finding::torch_absent  ? missing
                                                      : CheckStatus::warning,
                    {}});
  check_torch_cuda(*python, diagnosis);
}

}  // namespace tidemark
