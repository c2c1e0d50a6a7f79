// clang-format off
//   cuda_runtime_api.h  cudaMalloc, cudaFree, cudaGetDevice, cudaHostAlloc, cudaFreeHost, cudaHostRegister,
//                       cudaHostUnregister, cudaGetDriverEntryPoint, cudaGetDriverEntryPointByVersion
//   cuda.h              cuMemCreate, cuMemMap, cuMemUnmap: of expandable segments, looked up by the last two, or by dlsym()
//                       in older versions of PyTorch
//   c10/core/impl/DeviceGuardImplInterface.h  DeviceGuardImplRegistrar
// clang-format on
//
// This file is compiled with frame pointers: native_caller_context() reads ours.
#include "collect/process/driver/allocator_calls.h"

#include <string.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/process/driver/cupti_api.h"
#include "collect/process/driver/driver_calls.h"
#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/subscription.h"
#include "collect/process/elf_dynamic.h"
#include "collect/process/event_writer.h"

namespace tidemark::process {
namespace {

using ring::DriverCall;
using Status = int;  // cudaError_t, CUresult
constexpr Status kDone = 0;

/// The function replaced at an import slot; known before the replacement can be called.
template <typename Function>
struct Replaced {
  std::atomic<void*> original{nullptr};

  template <typename... Arguments>
  Status operator()(Arguments... arguments) const noexcept {
    return reinterpret_cast<Function*>(original.load(std::memory_order_acquire))(arguments...);
  }
};

constinit Replaced<Status(void**, std::size_t)> cuda_malloc;
constinit Replaced<Status(void*)> cuda_free;
constinit Replaced<Status(int*)> cuda_get_device;
constinit Replaced<Status(void**, std::size_t, unsigned)> cuda_host_alloc;
constinit Replaced<Status(void*)> cuda_free_host;
constinit Replaced<Status(void*, std::size_t, unsigned)> cuda_host_register;
constinit Replaced<Status(void*)> cuda_host_unregister;
constinit Replaced<Status(const char*, void**, unsigned long long, int*)> entry_point;
constinit Replaced<Status(const char*, void**, unsigned, unsigned long long, int*)> entry_point_by_version;
constinit Replaced<Status(cuda::AllocationHandle*, std::size_t, const cuda::AllocationProperties*, unsigned long long)>
    mem_create;
constinit Replaced<Status(cuda::DevicePointer, std::size_t, std::size_t, cuda::AllocationHandle, unsigned long long)>
    mem_map;
constinit Replaced<Status(cuda::DevicePointer, std::size_t)> mem_unmap;

std::atomic<void*> dlsym_call;

// Mapped range of libc10_cuda. Other libraries may get functions that it looked up: their calls are passed on
// unchanged, by a jump, so that code that reads return addresses sees theirs.
std::atomic<std::uintptr_t> allocator_begin;
std::atomic<std::uintptr_t> allocator_end;

bool is_allocator(const void* caller) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= allocator_begin.load(std::memory_order_relaxed) &&
         address < allocator_end.load(std::memory_order_relaxed);
}

std::uint64_t number_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

int current_device() noexcept {
  int device = -1;
  const bool is_known = cuda_get_device.original.load(std::memory_order_acquire) != nullptr;
  return is_known && cuda_get_device(&device) == kDone ? device : -1;
}

/// Calls a function that releases memory and then `record`, with the ticks of the call; see ring/layout.h for the
/// reason.
template <typename Call, typename Record>
Status give_back(const Call& call, const Record& record) noexcept {
  const std::uint64_t made = ticks(session.clock);
  set_driver_call_since(made);
  const Status status = call();
  if (status == kDone) record(made);
  set_driver_call_since(0);
  return status;
}

// ---- segments ----

Status on_malloc(void** address, std::size_t bytes) noexcept {
  const Status status = cuda_malloc(address, bytes);
  if (status == kDone) record_segment_taken(DriverCall::allocate, current_device(), {number_of(*address), bytes});
  return status;
}

Status on_free(void* address) noexcept {
  return give_back(
      [&] { return cuda_free(address); },
      [&](std::uint64_t made) { record_segment_given_back(DriverCall::free, {number_of(address)}, made); });
}

Status on_mem_create(cuda::AllocationHandle* handle, std::size_t bytes, const cuda::AllocationProperties* properties,
                     unsigned long long flags) noexcept {
  if (!is_allocator(__builtin_return_address(0))) return mem_create(handle, bytes, properties, flags);
  const Status status = mem_create(handle, bytes, properties, flags);
  if (status == kDone)
    record_segment_taken(DriverCall::create, cuda::device_at(properties->location), {*handle, bytes});
  return status;
}

Status on_mem_map(cuda::DevicePointer address, std::size_t bytes, std::size_t offset, cuda::AllocationHandle handle,
                  unsigned long long flags) noexcept {
  if (!is_allocator(__builtin_return_address(0))) return mem_map(address, bytes, offset, handle, flags);
  const Status status = mem_map(address, bytes, offset, handle, flags);
  if (status == kDone) record_segment_taken(DriverCall::map, -1, {address, bytes, handle});
  return status;
}

Status on_mem_unmap(cuda::DevicePointer address, std::size_t bytes) noexcept {
  if (!is_allocator(__builtin_return_address(0))) return mem_unmap(address, bytes);
  return give_back([&] { return mem_unmap(address, bytes); },
                   [&](std::uint64_t made) {
                     record_segment_given_back(DriverCall::unmap, {address, bytes}, made);
                   });
}

struct DriverFunction {
  const char* name;
  void* replacement;
  std::atomic<void*>* original;
};

/// The replacement for a function of the driver.
void replace_driver_function(const char* name, void** function) noexcept {
  const std::array<DriverFunction, 3> replaced = {{
      {"cuMemCreate", reinterpret_cast<void*>(&on_mem_create), &mem_create.original},
      {"cuMemMap", reinterpret_cast<void*>(&on_mem_map), &mem_map.original},
      {"cuMemUnmap", reinterpret_cast<void*>(&on_mem_unmap), &mem_unmap.original},
  }};
  for (const DriverFunction& one : replaced) {
    if (::strcmp(name, one.name) != 0 || *function == one.replacement) continue;
    one.original->store(*function, std::memory_order_release);
    *function = one.replacement;
  }
}

Status on_entry_point(const char* name, void** function, unsigned long long flags, int* found) noexcept {
  const Status status = entry_point(name, function, flags, found);
  if (status == kDone && *function != nullptr) replace_driver_function(name, function);
  return status;
}

Status on_entry_point_by_version(const char* name, void** function, unsigned version, unsigned long long flags,
                                 int* found) noexcept {
  const Status status = entry_point_by_version(name, function, version, flags, found);
  if (status == kDone && *function != nullptr) replace_driver_function(name, function);
  return status;
}

/// With a handle, as libc10_cuda always passes it: a lookup of the next definition (RTLD_NEXT) depends on the caller.
void* on_dlsym(void* library, const char* name) noexcept {
  void* found =
      reinterpret_cast<void* (*)(void*, const char*)>(dlsym_call.load(std::memory_order_acquire))(library, name);
  if (found != nullptr) replace_driver_function(name, &found);
  return found;
}

// ---- page-locked memory ----

void record_pinned(void* address, std::size_t bytes, const NativeContext& caller) noexcept {
  if (cuda::is_subscribed()) return;  // the driver's own call has been recorded
  record_driver_allocation(DriverCall::allocate_host, -1, {number_of(address), bytes}, caller);
}

template <typename Call>
Status unpin(const Call& call, void* address) noexcept {
  if (cuda::is_subscribed()) return call(address);
  return give_back([&] { return call(address); },
                   [&](std::uint64_t made) {
                     constexpr std::uint64_t kMayBeUnknown = 1;  // it may be from before recording began
                     record_driver_call(DriverCall::free, -1, {number_of(address), kMayBeUnknown}, made);
                   });
}

Status on_host_alloc(void** address, std::size_t bytes, unsigned flags) noexcept {
  const Status status = cuda_host_alloc(address, bytes, flags);
  if (status == kDone) record_pinned(*address, bytes, native_caller_context());
  return status;
}

Status on_host_register(void* address, std::size_t bytes, unsigned flags) noexcept {
  const Status status = cuda_host_register(address, bytes, flags);
  if (status == kDone) record_pinned(address, bytes, native_caller_context());
  return status;
}

Status on_free_host(void* address) noexcept {
  return unpin(cuda_free_host, address);
}

Status on_host_unregister(void* address) noexcept {
  return unpin(cuda_host_unregister, address);
}

template <typename Function, typename Signature>
Import import_of(const char* symbol, Function* replacement, Replaced<Signature>& replaced) noexcept {
  return {symbol, reinterpret_cast<void*>(replacement), &replaced.original};
}

constexpr std::int8_t kCuda = 1;  // c10::DeviceType::CUDA

using RegisterDevice = void(void* self, std::int8_t type, const void* guard);
constinit Forward<RegisterDevice> register_device{
    "_ZN3c104impl24DeviceGuardImplRegistrarC1ENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE"};

}  // namespace

// Host memory is taken by libtorch_cuda (at::cuda::CachingHostAllocator), or by the program through
// torch.cuda.cudart(). Each library has its own slots for the same function.
void patch_allocator_calls() noexcept {
  const std::array segments = {
      import_of("cudaMalloc", &on_malloc, cuda_malloc),
      import_of("cudaFree", &on_free, cuda_free),
      Import{"cudaGetDevice", nullptr, &cuda_get_device.original},
      Import{"dlsym", reinterpret_cast<void*>(&on_dlsym), &dlsym_call},
      import_of("cudaGetDriverEntryPoint", &on_entry_point, entry_point),
      import_of("cudaGetDriverEntryPointByVersion", &on_entry_point_by_version, entry_point_by_version),
  };
  const std::array pinned = {
      import_of("cudaHostAlloc", &on_host_alloc, cuda_host_alloc),
      import_of("cudaFreeHost", &on_free_host, cuda_free_host),
      import_of("cudaHostRegister", &on_host_register, cuda_host_register),
      import_of("cudaHostUnregister", &on_host_unregister, cuda_host_unregister),
  };
  const LibraryRange allocator = patch_imports_of("libc10_cuda.so", segments);
  allocator_begin.store(allocator.begin, std::memory_order_relaxed);
  allocator_end.store(allocator.end, std::memory_order_relaxed);
  patch_imports_of("libtorch_cuda.so", pinned);
  patch_imports_of("libtorch_python.so", pinned);
}

}  // namespace tidemark::process

/// libc10_cuda calls this when it has just been loaded, before its allocator can be called.
extern "C" __attribute__((visibility("default"), used)) void
tidemark_register_device(void* self, std::int8_t type, const void* guard) __asm__(
    "_ZN3c104impl24DeviceGuardImplRegistrarC1ENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE");

extern "C" __attribute__((visibility("default"), used)) void tidemark_register_device(void* self, std::int8_t type,
                                                                                      const void* guard) {
  using namespace tidemark::process;
  RegisterDevice* next =
      register_device.get(__builtin_return_address(0), reinterpret_cast<const void*>(&tidemark_register_device));
  if (next != nullptr) next(self, type, guard);
  if (type == kCuda) patch_allocator_calls();
}
