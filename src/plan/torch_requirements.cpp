#include "plan/torch_requirements.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tidemark {
namespace {

namespace fs = std::filesystem;

using Version = std::array<int, 3>;

// "13.0" or "9.19.0.56": its first three numbers.
Version read_version(const std::string& text) {
  Version version{};
  std::sscanf(text.c_str(), "%d.%d.%d", &version[0], &version[1],
              &version[2]);  // NOLINT(cert-err34-c): 0 where there is none
  return version;
}

// The file METADATA of the package whose folder is `torch_folder`.
std::ifstream open_metadata(const std::string& torch_folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(torch_folder).parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("torch-") && name.ends_with(".dist-info")) return std::ifstream(entry.path() / "METADATA");
  }
  return {};
}

// Of "Requires-Dist: nvidia-cudnn-cu13==9.19.0.56; platform_system == ...", for "nvidia-cudnn-": the version.
bool requires_version(const std::string& line, const std::string& package, Version& version) {
  const std::string start = "Requires-Dist: " + package;
  const std::size_t equals = line.find("==");
  if (!line.starts_with(start) || equals == std::string::npos || line.find(';') < equals) return false;
  version = read_version(line.substr(equals + 2));
  return true;
}

}  // namespace

TorchRequirements torch_requirements(const InterpreterFacts& python) {
  const Version cuda = read_version(python.torch_cuda);
  Version cublas = cuda;
  Version cudnn = cuda[0] >= 13 ? Version{9, 13, 0} : Version{9, 1, 0};
  Version nccl = {2, 27, 7};
  std::ifstream metadata = open_metadata(python.torch_folder);
  for (std::string line; std::getline(metadata, line) && !line.empty();) {
    requires_version(line, "nvidia-cublas-", cublas);
    requires_version(line, "nvidia-cudnn-", cudnn);
    requires_version(line, "nvidia-nccl-", nccl);
  }
  return {cuda[0] * 1000 + cuda[1] * 10, cublas[0] * 10000 + cublas[1] * 100 + cublas[2],
          cudnn[0] * 10000 + cudnn[1] * 100 + cudnn[2], nccl[0] * 10000 + nccl[1] * 100 + nccl[2]};
}

}  // namespace tidemark
