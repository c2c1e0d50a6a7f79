#include "phantom/gpu/usage.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/scoped_fd.h"
#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage_file.h"

namespace tidemark::phantom {
namespace {

// If the file cannot be created, the counts are lost.
UsageFile* map_file() {
  static UsageFile nowhere{};
  const std::string path = std::string(phantom_folder()) + "/usage." + std::to_string(getpid());
  const ScopedFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || ftruncate(file.get(), sizeof(UsageFile)) != 0) return &nowhere;
  void* const mapped = mmap(nullptr, sizeof(UsageFile), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return &nowhere;
  auto* const usage = static_cast<UsageFile*>(mapped);
  usage->magic = UsageFile::kMagic;
  return usage;
}

UsageFile& usage() {
  static UsageFile* const kUsage = map_file();
  return *kUsage;
}

// The path of the library that contains the address; empty if there is none.
std::string library_at(const void* address) {
  Dl_info found{};
  return address != nullptr && dladdr(address, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

std::mutex own_runtime_mutex;
std::set<std::string>& own_runtimes() {
  static auto* const kLibraries = new std::set<std::string>;
  return *kLibraries;
}

// The status with which a function of this library reports failure.
int failure_of(const char* function) {
  struct Library {
    const char* prefix;
    int status;
  };
  // cuSPARSELt comes before cuSPARSE, cuBLASLt is like cuBLAS; all others are the driver's or the runtime's.
  constexpr Library kLibraries[] = {{"cublas", 15 /* CUBLAS_STATUS_NOT_SUPPORTED */},
                                    {"cudnn", 3000 /* CUDNN_STATUS_NOT_SUPPORTED */},
                                    {"cusparse", 10 /* CUSPARSE_STATUS_NOT_SUPPORTED */},
                                    {"cusolver", 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */},
                                    {"cufft", 16 /* CUFFT_NOT_SUPPORTED */},
                                    {"nvrtc", 11 /* NVRTC_ERROR_INTERNAL_ERROR */},
                                    {"nccl", 3 /* ncclInternalError */},
                                    {"pnccl", 3},
                                    {"nvml", 3 /* NVML_ERROR_NOT_SUPPORTED */},
                                    {"cupti", 15 /* CUPTI_ERROR_NOT_INITIALIZED */},
                                    {"nvshmem", 7}};
  for (const Library& library : kLibraries)
    if (std::strncmp(function, library.prefix, std::strlen(library.prefix)) == 0) return library.status;
  return kNotSupported;
}

// nvrtcGetErrorString, cusparseGetErrorName. The driver's own write it to a pointer argument, and are implemented.
bool returns_text(std::string_view function) {
  return function.ends_with("GetErrorString") || function.ends_with("GetErrorName");
}

}  // namespace

void count_read() {
  usage().reads.fetch_add(1, std::memory_order_relaxed);
}

void count_request() {
  usage().requests.fetch_add(1, std::memory_order_relaxed);
}

void count_communicator() {
  usage().communicators.fetch_add(1);
}

void count_driver_bytes(int device, std::uint64_t bytes) {
  usage().driver_bytes[device].fetch_add(bytes, std::memory_order_relaxed);
}

void count_steps(std::uint64_t steps, std::uint64_t idle_optimizers, bool by_marks) {
  usage().steps_by_marks.store(by_marks ? 1 : 0);
  usage().steps.store(steps);
  usage().idle_optimizers.store(idle_optimizers);
}

void say_stopped() {
  usage().stopped.store(1);
}

void count_unanswered(const char* function) {
  static std::mutex mutex;
  static auto* const kSeen = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (!kSeen->insert(function).second) return;
  const std::uint32_t place = usage().unanswered.load();
  if (place < UsageFile::kMaxNames) {
    std::snprintf(usage().names[place], UsageFile::kNameBytes, "%s", function);
    usage().unanswered.store(place + 1);
  }
  std::fprintf(stderr, "tidemark: the phantom GPU has no answer for %s; the call fails\n", function);
}

std::optional<std::size_t> count_taken(const void* caller, int device, std::uint64_t bytes) {
  const std::string path = library_at(caller);
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.empty() || name.starts_with("libc10_cuda.so")) return std::nullopt;
  // With recording, hooks come before the calls of libc10_cuda (collect/process/driver/allocator_calls.cpp).
  if (name.starts_with("libtidemark_preload.so")) return std::nullopt;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (std::size_t place = 0; place < UsageFile::kMaxLibraries; ++place) {
    LibraryMemory& library = usage().libraries[place];
    if (library.name[0] == '\0') {
      library.device = device;
      std::snprintf(library.name, sizeof library.name, "%s", name.c_str());
    }
    if (library.device != device || name.compare(0, sizeof library.name - 1, library.name) != 0) continue;
    library.bytes += bytes;
    if (library.bytes > library.peak_bytes) library.peak_bytes.store(library.bytes);
    return place;
  }
  return std::nullopt;
}

void count_returned(std::optional<std::size_t> library, std::uint64_t bytes) {
  if (!library) return;
  LibraryMemory& counted = usage().libraries[*library];
  counted.bytes -= std::min(counted.bytes.load(), bytes);  // a forked child may free memory that its parent took
}

void note_own_runtime(const void* caller) {
  const std::string path = library_at(caller);
  const std::lock_guard lock(own_runtime_mutex);
  if (!own_runtimes().insert(path).second) return;
  if (own_runtimes().size() == 1) std::snprintf(usage().own_runtime, sizeof usage().own_runtime, "%s", path.c_str());
  std::fprintf(stderr,
               "tidemark: %s has a CUDA runtime of its own, which the phantom GPU cannot answer; its calls fail\n",
               path.c_str());
}

bool has_own_runtime(const void* caller) {
  const std::lock_guard lock(own_runtime_mutex);
  return !own_runtimes().empty() && own_runtimes().contains(library_at(caller));
}

void count_estimate(Estimate kind, const std::string& name) {
  static std::mutex mutex;
  static auto* const kSeen = new std::set<std::string>[kEstimates];
  const auto index = static_cast<std::size_t>(kind);
  const std::lock_guard lock(mutex);
  std::set<std::string>& seen = kSeen[index];
  if (seen.insert(name).second) usage().estimates[index].fetch_add(1, std::memory_order_relaxed);
}

/// The stand-ins call this for every function without an implementation: prints its name, returns its library's status
/// for failure. A function that returns the text of a status returns a text.
TIDEMARK_PHANTOM_API std::intptr_t tidemark_phantom_unanswered(const char* function) {
  if (returns_text(function)) return reinterpret_cast<std::intptr_t>("a call without an answer of the phantom GPU");
  count_unanswered(function);
  return failure_of(function);
}

/// The stand-ins call this for functions that create an object: writes a unique handle.
TIDEMARK_PHANTOM_API int tidemark_phantom_create_handle(Handle* handle) {
  *handle = new_handle();
  return kSuccess;
}

}  // namespace tidemark::phantom
