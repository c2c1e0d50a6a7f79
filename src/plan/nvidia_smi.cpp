#include "plan/nvidia_smi.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/units.h"
#include "phantom/gpu/device_uuid.h"

namespace tidemark {

extern const char kNvidiaSmiQueries[];

namespace {

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

}  // namespace

Result<void> write_nvidia_smi(const std::string& folder, const PhantomOptions& options) {
  std::string uuids;
  for (int device = 0; device < options.devices; ++device)
    uuids += (device == 0 ? "" : " ") + phantom::device_uuid(device);
  const std::string path = folder + "/nvidia-smi";
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  std::ofstream file(path);
  file << fmt::format(
              "#!/bin/sh\n# The GPUs of `tidemark plan`.\nname={} total={} capability={}.{} count={} uuids={}\n",
              shell_word(std::string(options.gpu.full_name)), options.memory_bytes / kMiB, options.gpu.major,
              options.gpu.minor, options.devices, shell_word(uuids))
       << kNvidiaSmiQueries;
  file.close();
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (!file || error) return Error{fmt::format("{}: cannot be written", path)};
  return {};
}

}  // namespace tidemark
