#include "plan/gpu_profiles.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "plan/phantom_run.h"

namespace tidemark {

namespace {

bool same(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

// "RTX-3090", "RTX 3090" and "rtx3090" are one name.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) continue;
    letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return letters;
}

std::string names_of(const std::vector<const GpuProfile*>& gpus, const char* between) {
  std::string names;
  for (const GpuProfile* gpu : gpus) names += (names.empty() ? "" : between) + gpu->name;
  return names;
}

// The known GPUs whose model number is in the name: "3090" of RTX-3090, "h100" of H100-80GB. `wanted`: as letters_of().
std::string similar_gpus(const std::string& wanted) {
  constexpr std::size_t kMinNumber = 3;
  std::vector<const GpuProfile*> found;
  for (const GpuProfile& gpu : gpu_profiles()) {
    const std::string_view name = gpu.name;
    const std::size_t digit = name.find_first_of("0123456789");
    if (digit == std::string_view::npos) continue;
    const std::size_t begin = name.rfind('-', digit) == std::string_view::npos ? 0 : name.rfind('-', digit) + 1;
    const std::string number = letters_of(name.substr(begin, name.find('-', digit) - begin));
    if (number.size() >= kMinNumber && wanted.find(number) != std::string::npos) found.push_back(&gpu);
  }
  return names_of(found, ", ");
}

Result<GpuProfile> read_gpu_profile(const std::string& path) {
  std::ifstream file(path);
  std::string text(64 * kKiB, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof()) {  // also for larger files
    return Error{fmt::format("{}: this GPU profile cannot be read; known GPUs have names without a dot", path)};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  auto profiles = parse_gpu_profiles(text, path);
  if (!profiles) return profiles.error();
  if (profiles->size() != 1) {
    return Error{fmt::format("{}: describes {} GPUs; a profile describes one", path, profiles->size())};
  }
  profiles->front().measured = true;  // the author of the file knows the GPU
  return std::move(profiles->front());
}

// Measurements on such a GPU are valid for this one.
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
// nv-ioctl-numbers.h). Without the first of them, which compares versions, CUDA finds no device. Requests of frame
// buffers, which have the same type, have lower numbers.
constexpr unsigned kFirstRequest = 'F' << 8 | 200;
constexpr unsigned kLastRequest = 'F' << 8 | 0xFF;

template <typename T>
std::optional<T> read_number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<T>(text);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool read_capability(GpuProfile& gpu, std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  const auto major = read_number<int>(text.substr(0, dot));
  const auto minor = read_number<int>(text.substr(dot + 1));
  if (!major || !minor || *major == 0) return false;
  gpu.major = *major;
  gpu.minor = *minor;
  return true;
}

struct Key {
  std::string_view name;
  std::string_view example;
  bool (*set)(GpuProfile&, std::string_view);  // false: not such a value
  bool needed = false;
};

template <auto Member>
bool set_size(GpuProfile& gpu, std::string_view text) {
  const auto size = parse_size(text);
  if (size) gpu.*Member = *size;
  return size && *size > 0;
}

bool set_context(GpuProfile& gpu, std::string_view text) {
  gpu.context_measured = true;
  return set_size<&GpuProfile::context_bytes>(gpu, text);
}

template <auto Member>
bool set_count(GpuProfile& gpu, std::string_view text) {
  const auto count = read_number<int>(text);
  if (count) gpu.*Member = *count;
  return count && *count > 0;
}

template <auto Member>
bool set_limit(GpuProfile& gpu, std::string_view text) {
  const auto size = parse_size(text);
  if (!size || *size == 0 || *size > kMiB) return false;
  gpu.limits.*Member = static_cast<int>(*size);
  return true;
}

bool set_name(GpuProfile& gpu, std::string_view text) {
  gpu.full_name = text;
  return !text.empty();
}

bool set_measured(GpuProfile& gpu, std::string_view text) {
  gpu.measured = text == "yes";
  return text == "yes" || text == "no";
}

constexpr std::array kKeys = {
    Key{"name", "NVIDIA H200", set_name},
    Key{"memory", "24GiB", set_size<&GpuProfile::memory_bytes>, true},
    Key{"context", "620MiB", set_context},
    Key{"compute_capability", "9.0", read_capability, true},
    Key{"multiprocessors", "132", set_count<&GpuProfile::multiprocessors>, true},
    Key{"l2_cache", "60MiB", set_size<&GpuProfile::l2_cache_bytes>},
    Key{"memory_bus_bits", "384", set_count<&GpuProfile::memory_bus_bits>},
    Key{"shared_memory", "228KiB", set_limit<&MultiprocessorLimits::shared_bytes>},
    Key{"shared_memory_per_block", "227KiB", set_limit<&MultiprocessorLimits::shared_bytes_per_block>},
    Key{"threads", "2048", set_limit<&MultiprocessorLimits::threads>},
    Key{"blocks", "32", set_limit<&MultiprocessorLimits::blocks>},
    Key{"measured", "yes", set_measured},
};

class Parser {
 public:
  explicit Parser(const std::string& origin) : origin_(origin) {}

  Result<void> add_line(std::string_view line) {
    ++line_;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) return {};
    if (line.starts_with('[') && line.ends_with(']')) return begin(trimmed(line.substr(1, line.size() - 2)));
    if (gpus_.empty()) {
      if (auto begun = begin(std::filesystem::path(origin_).stem().string()); !begun) return begun;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return wrong(fmt::format("'{}' is no line `key = value`, such as `memory = 24GiB`", line));
    }
    return set(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }

  // The last one is complete; all of them.
  Result<std::vector<GpuProfile>> finish() {
    if (auto complete = finish_one(); !complete) return complete.error();
    if (gpus_.empty()) return Error{fmt::format("{}: no profile; {}", origin_, kSmallest)};
    return std::move(gpus_);
  }

 private:
  static constexpr std::string_view kSmallest =
      "it needs at least `memory = 24GiB`, `compute_capability = 8.9` and `multiprocessors = 128`";

  [[nodiscard]] Error wrong(const std::string& what) const {
    return Error{fmt::format("{}:{}: {}", origin_, line_, what)};
  }

  Result<void> begin(std::string_view name) {
    if (auto complete = finish_one(); !complete) return complete;
    GpuProfile& gpu = gpus_.emplace_back();
    gpu.name = gpu.full_name = name;
    given_ = {};
    return {};
  }

  Result<void> set(std::string_view name, std::string_view value) {
    std::string names;
    for (std::size_t index = 0; index < kKeys.size(); ++index) {
      const Key& key = kKeys[index];
      names += fmt::format("{}{}", names.empty() ? "" : ", ", key.name);
      if (key.name != name) continue;
      if (!key.set(gpus_.back(), value)) {
        return wrong(fmt::format("{} = {}: write it as in `{} = {}`", name, value, name, key.example));
      }
      given_[index] = true;
      return {};
    }
    return wrong(fmt::format("no field of a GPU is called '{}'; the fields are {}", name, names));
  }

  Result<void> finish_one() {
    if (gpus_.empty()) return {};
    GpuProfile& gpu = gpus_.back();
    for (std::size_t index = 0; index < kKeys.size(); ++index) {
      if (kKeys[index].needed && !given_[index]) {
        return Error{fmt::format("{}: {} has no {}; {}", origin_, gpu.name, kKeys[index].name, kSmallest)};
      }
    }
    const auto usual = limits_of(gpu.major, gpu.minor);
    for (int MultiprocessorLimits::*limit :
         {&MultiprocessorLimits::shared_bytes, &MultiprocessorLimits::shared_bytes_per_block,
          &MultiprocessorLimits::threads, &MultiprocessorLimits::blocks}) {
      if (gpu.limits.*limit != 0) continue;
      if (!usual) {
        return Error{fmt::format(
            "{}: the limits of compute capability {}.{} are not known; add shared_memory, shared_memory_per_block, "
            "threads and blocks of a multiprocessor",
            origin_, gpu.major, gpu.minor)};
      }
      gpu.limits.*limit = (*usual).*limit;
    }
    return {};
  }

  const std::string& origin_;
  std::size_t line_ = 0;
  std::vector<GpuProfile> gpus_;
  std::array<bool, kKeys.size()> given_{};
};

}  // namespace

std::span<const GpuProfile> gpu_profiles() {
  static const std::vector<GpuProfile> kProfiles = *parse_gpu_profiles(known_gpus_text(), "known_gpus.cpp");
  return kProfiles;
}

Result<GpuProfile> find_gpu_profile(std::string_view name) {
  if (name == "auto") return profile_here();
  if (name.find_first_of("./") != std::string_view::npos) return read_gpu_profile(std::string(name));
  constexpr std::size_t kMinPart = 3;
  const std::string wanted = letters_of(name);
  std::vector<const GpuProfile*> found;
  for (const GpuProfile& gpu : gpu_profiles()) {
    const std::string full_name = letters_of(gpu.full_name);
    if (letters_of(gpu.name) == wanted || full_name == wanted) return gpu;
    const bool has_name = letters_of(gpu.name).find(wanted) != std::string::npos;
    if (wanted.size() >= kMinPart && (has_name || full_name.find(wanted) != std::string::npos)) found.push_back(&gpu);
  }
  if (found.size() == 1) return *found.front();
  if (!found.empty()) {
    return Error{fmt::format("--gpu {}: several GPUs have this name; choose {}", name,
                             names_of(found, found.size() == 2 ? " or " : ", "))};
  }
  if (const std::string similar = similar_gpus(wanted); !similar.empty()) {
    return Error{
        fmt::format("--gpu {}: unknown GPU; similar: {}; --memory sets another size, such as --gpu {} --memory 24GiB",
                    name, similar, similar.substr(0, similar.find(',')))};
  }
  if (const auto bytes = parse_size(name); bytes && *bytes >= kGiB) {
    return Error{fmt::format(
        "--gpu {}: a size, not a GPU; name a GPU and set its memory, such as --gpu RTX-3090 --memory {}", name, name)};
  }
  std::vector<const GpuProfile*> all;
  for (const GpuProfile& gpu : gpu_profiles()) all.push_back(&gpu);
  return Error{
      fmt::format("--gpu {}: unknown GPU; known: {}; for another one, write a profile (tidemark devices --profile) "
                  "and give its file",
                  name, names_of(all, ", "))};
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

// An environment alone is not sufficient: `env -i` removes CUDA_VISIBLE_DEVICES. Hiding the files of the devices needs
// a mount namespace, which not every user may create.
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

Result<std::vector<GpuProfile>> parse_gpu_profiles(std::string_view text, const std::string& origin) {
  Parser parser(origin);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (auto added = parser.add_line(text.substr(0, end)); !added) return added.error();
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parser.finish();
}

std::string gpu_profile_text(const GpuProfile& gpu) {
  std::string text = fmt::format("[{}]\nname = {}\nmemory = {}  # {}\n", gpu.name, gpu.full_name, gpu.memory_bytes,
                                 format_bytes(gpu.memory_bytes));
  if (gpu.context_measured) {
    text += fmt::format("context = {}\n", gpu.context_bytes);
  } else {
    text += "# context = 620MiB  # what a process with PyTorch's kernels takes before its first tensor, where known\n";
  }
  text += fmt::format("compute_capability = {}.{}\nmultiprocessors = {}\n", gpu.major, gpu.minor, gpu.multiprocessors);
  if (gpu.l2_cache_bytes != 0) text += fmt::format("l2_cache = {}\n", gpu.l2_cache_bytes);
  if (gpu.memory_bus_bits != 0) text += fmt::format("memory_bus_bits = {}\n", gpu.memory_bus_bits);
  return text +
         fmt::format(
             "# of a multiprocessor:\nshared_memory = {}\nshared_memory_per_block = {}\nthreads = {}\nblocks = {}\n",
             gpu.limits.shared_bytes, gpu.limits.shared_bytes_per_block, gpu.limits.threads, gpu.limits.blocks);
}

}  // namespace tidemark
