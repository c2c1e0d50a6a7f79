#include "phantom/gpu/profile.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tidemark::phantom {
namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "tidemark: the phantom GPU cannot start: %s; use `tidemark plan`\n", what);
  std::_Exit(2);
}

struct Field {
  const char* key;
  int Profile::*value;
};

constexpr Field kFields[] = {
    {"devices", &Profile::devices},
    {"major", &Profile::major},
    {"minor", &Profile::minor},
    {"multiprocessors", &Profile::multiprocessors},
    {"shared_per_block", &Profile::shared_per_block},
    {"shared_per_block_optin", &Profile::shared_per_block_optin},
    {"shared_per_multiprocessor", &Profile::shared_per_multiprocessor},
    {"registers_per_multiprocessor", &Profile::registers_per_multiprocessor},
    {"threads_per_multiprocessor", &Profile::threads_per_multiprocessor},
    {"blocks_per_multiprocessor", &Profile::blocks_per_multiprocessor},
    {"l2_cache", &Profile::l2_cache},
    {"memory_bus_bits", &Profile::memory_bus_bits},
    {"clock_khz", &Profile::clock_khz},
    {"memory_clock_khz", &Profile::memory_clock_khz},
    {"cuda_version", &Profile::cuda_version},
    {"cublas_version", &Profile::cublas_version},
    {"cudnn_version", &Profile::cudnn_version},
    {"nccl_version", &Profile::nccl_version},
    {"steps", &Profile::steps},
};

void set(Profile& profile, const char* key, const char* value) {
  if (std::strcmp(key, "name") == 0) profile.name = value;
  if (std::strcmp(key, "memory") == 0) profile.memory = std::strtoull(value, nullptr, 10);
  if (std::strcmp(key, "context") == 0) profile.context = std::strtoull(value, nullptr, 10);
  if (std::strcmp(key, "nccl_first") == 0) profile.nccl_first = std::strtoull(value, nullptr, 10);
  if (std::strcmp(key, "nccl_further") == 0) profile.nccl_further = std::strtoull(value, nullptr, 10);
  for (const Field& field : kFields)
    if (std::strcmp(key, field.key) == 0) profile.*field.value = std::atoi(value);
}

Profile read() {
  const std::string path = std::string(phantom_folder()) + "/device";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) fail("it has no profile");
  Profile profile;
  char key[64];
  char value[256];
  while (std::fscanf(file, "%63s %255[^\n]", key, value) == 2) set(profile, key, value);
  std::fclose(file);
  if (profile.memory == 0 || profile.major == 0 || profile.multiprocessors == 0) fail("its profile is not complete");
  return profile;
}

bool is_measured_gpu() {
  return profile().major == 9 && profile().minor == 0;
}

}  // namespace

const char* phantom_folder() {
  const char* folder = std::getenv("TIDEMARK_PHANTOM");
  if (folder == nullptr) fail("TIDEMARK_PHANTOM is not set");
  return folder;
}

const Profile& profile() {
  static const Profile kProfile = read();
  return kProfile;
}

bool is_measured_cudnn() {
  return is_measured_gpu() && profile().cudnn_version / 100 == 919;
}

bool is_measured_cuda_libraries() {
  return is_measured_gpu() && profile().cuda_version == 13000;
}

}  // namespace tidemark::phantom
