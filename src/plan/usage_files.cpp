#include "plan/usage_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tidemark {

std::vector<UsageOfProcess> read_usage_files(const std::string& folder) {
  constexpr const char* kStart = "usage.";
  std::vector<UsageOfProcess> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(kStart)) continue;
    auto file = std::make_unique<phantom::UsageFile>();
    std::ifstream(entry.path(), std::ios::binary).read(reinterpret_cast<char*>(file.get()), sizeof *file);
    if (file->magic != phantom::UsageFile::kMagic) continue;
    found.push_back({static_cast<pid_t>(std::atoi(entry.path().extension().c_str() + 1)), std::move(file)});
  }
  return found;
}

}  // namespace tidemark
