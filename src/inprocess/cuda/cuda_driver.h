// The functions of the CUDA driver that copy from the host to a device asynchronously, and report free memory. The
// library is looked up at the first use: nothing is linked with CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace tidemark::cuda {

using Status = int;                   ///< CUresult
using Context = void*;                ///< CUcontext
using Stream = void*;                 ///< CUstream; null: the legacy default stream
using Event = void*;                  ///< CUevent
using Module = void*;                 ///< CUmodule
using Function = void*;               ///< CUfunction
using DevicePointer = std::uint64_t;  ///< CUdeviceptr

inline constexpr Status kSuccess = 0;
// Flags from CUDA's documentation.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;

/// As cuda.h declares them.
struct Driver {
  Status (*init)(unsigned flags) = nullptr;
  Status (*device_count)(int* count) = nullptr;
  Status (*device)(int* device, int ordinal) = nullptr;
  Status (*retain_primary_context)(Context* context, int device) = nullptr;
  Status (*release_primary_context)(int device) = nullptr;
  Status (*current_context)(Context* context) = nullptr;
  Status (*set_current_context)(Context context) = nullptr;
  Status (*host_alloc)(void** address, std::size_t bytes, unsigned flags) = nullptr;
  Status (*host_free)(void* address) = nullptr;
  Status (*alloc)(DevicePointer* address, std::size_t bytes) = nullptr;
  Status (*free)(DevicePointer address) = nullptr;
  Status (*create_stream)(Stream* stream, unsigned flags) = nullptr;
  Status (*destroy_stream)(Stream stream) = nullptr;
  Status (*synchronize_stream)(Stream stream) = nullptr;
  Status (*stream_wait_event)(Stream stream, Event event, unsigned flags) = nullptr;
  Status (*create_event)(Event* event, unsigned flags) = nullptr;
  Status (*destroy_event)(Event event) = nullptr;
  Status (*record_event)(Event event, Stream stream) = nullptr;
  Status (*synchronize_event)(Event event) = nullptr;
  Status (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes, Stream stream) = nullptr;
  Status (*load_module)(Module* module, const void* image) = nullptr;
  Status (*unload_module)(Module module) = nullptr;
  Status (*find_function)(Function* function, Module module, const char* name) = nullptr;
  Status (*launch)(Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                   unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Stream stream, void** parameters,
                   void** extra) = nullptr;
  Status (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  Status (*error_name)(Status status, const char** name) = nullptr;

  /// "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"
  [[nodiscard]] Error error(const char* function, Status status) const;
};

/// The driver of this machine, initialized; the same for all callers, and never unloaded. Any thread. An error if there
/// is none, or it has no device.
[[nodiscard]] Result<const Driver*> driver();

/// Makes a context current on this thread while it exists; another one may be current before and afterwards.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, Context context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  Context before_ = nullptr;
};

/// Retains a primary context while it exists. The driver outlives it.
class PrimaryContext {
 public:
  /// The context of a device, by CUDA's number in this process. An error if there is no such device.
  [[nodiscard]] static Result<PrimaryContext> retain(const Driver& driver, int ordinal);
  ~PrimaryContext();
  PrimaryContext(PrimaryContext&& other) noexcept;
  PrimaryContext& operator=(PrimaryContext&&) = delete;
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  [[nodiscard]] Context get() const { return context_; }

 private:
  PrimaryContext(const Driver& driver, int device, Context context)
      : driver_(&driver), device_(device), context_(context) {}

  const Driver* driver_;  ///< null: moved from
  int device_;            ///< CUdevice
  Context context_;
};

}  // namespace tidemark::cuda
