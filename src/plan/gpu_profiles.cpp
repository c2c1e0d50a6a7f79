#include "plan/gpu_profiles.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <ios>
#include <string>
#include <vector>

#include "base/units.h"
#include "plan/gpu_profile_text.h"
#include "plan/phantom_run.h"

namespace tidemark {

namespace {

bool same(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

Result<GpuProfile> read_gpu_profile(const std::string& path) {
  std::ifstream file(path);
  std::string text(64 * kKiB, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof()) {  // nor where it is larger
    return Error{fmt::format("{}: this GPU profile cannot be read; known GPUs have names without a dot", path)};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  auto profiles = parse_gpu_profiles(text, path);
  if (!profiles) return profiles.error();
  if (profiles->size() != 1) {
    return Error{fmt::format("{}: describes {} GPUs; a profile describes one", path, profiles->size())};
  }
  profiles->front().measured = true;  // whoever writes it down knows the GPU
  return std::move(profiles->front());
}

// What was measured of such a GPU holds for this one.
Result<GpuProfile> profile_here() {
  auto gpu = profile_of_this_machine();
  if (!gpu) return gpu;
  for (const GpuProfile& known : gpu_profiles()) {
    if (!same(known.full_name, gpu->full_name)) continue;
    gpu->name = known.name;
    gpu->context_bytes = known.context_bytes;
    gpu->context_measured = known.context_measured;
  }
  return gpu;
}

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Requests to NVIDIA's driver have the type 'F' and numbers from 200 on (NV_IOCTL_MAGIC and NV_IOCTL_BASE in its
// nv-ioctl-numbers.h). Without the first of them, which compares versions, CUDA finds no device. Those of frame
// buffers, which have the type too, are below.
constexpr unsigned kFirstRequest = 'F' << 8 | 200;
constexpr unsigned kLastRequest = 'F' << 8 | 0xFF;

}  // namespace

std::span<const GpuProfile> gpu_profiles() {
  static const std::vector<GpuProfile> kProfiles = *parse_gpu_profiles(known_gpus_text(), "known_gpus.cpp");
  return kProfiles;
}

Result<GpuProfile> find_gpu_profile(std::string_view name) {
  if (name == "auto") return profile_here();
  if (name.find_first_of("./") != std::string_view::npos) return read_gpu_profile(std::string(name));
  std::string names;
  for (const GpuProfile& gpu : gpu_profiles()) {
    if (same(gpu.name, name) || same(gpu.full_name, name)) return gpu;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", gpu.name);
  }
  return Error{
      fmt::format("--gpu {}: no such GPU is known; known are {}; describe another in a file (tidemark devices "
                  "--profile) and name that",
                  name, names)};
}

std::optional<MultiprocessorLimits> limits_of(int major, int minor) {
  switch (major * 10 + minor) {
    case 70:
      return {{98'304, 98'304, 2048, 32}};
    case 75:
      return {{65'536, 65'536, 1024, 16}};
    case 80:
      return {{167'936, 166'912, 2048, 32}};
    case 86:
    case 88:
      return {{102'400, 101'376, 1536, 16}};
    case 87:
      return {{167'936, 166'912, 1536, 16}};
    case 89:
    case 120:
    case 121:
      return {{102'400, 101'376, 1536, 24}};
    case 90:
    case 100:
    case 103:
      return {{233'472, 232'448, 2048, 32}};
    case 110:
      return {{233'472, 232'448, 1536, 24}};
    default:
      return std::nullopt;
  }
}

bool has_nvidia_driver() {
  return ::access("/dev/nvidiactl", F_OK) == 0;
}

// An environment alone does not do: CUDA_VISIBLE_DEVICES is gone after `env -i`. Hiding the files of the devices needs
// a mount namespace, which not every user may make.
void refuse_nvidia_driver() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 7),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),  // the low half, on little-endian machines
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xFFFF),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstRequest, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastRequest, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENODEV),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace tidemark
