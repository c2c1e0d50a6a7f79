// The primary context of a device: that of PyTorch and the CUDA runtime.
#pragma once

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"

namespace tidemark::cuda {

/// Keeps it as long as it lives. The driver outlives it.
class PrimaryContext {
 public:
  /// Of a device, as CUDA numbers them in this process. An error where no device has that number.
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

  const Driver* driver_;  ///< null: moved to another object
  int device_;            ///< CUdevice
  Context context_;
};

}  // namespace tidemark::cuda
