// The NVML functions in use, declared here so that building needs no CUDA and running needs no driver.
// tests/unit/collect/machine/nvml_header_test.cpp compares them with NVIDIA's nvml.h.
//
// Reference: https://docs.nvidia.com/deploy/nvml-api
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tidemark::nvml {

/// nvmlReturn_t, with the values that are distinguished here.
enum Return : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kVersionMismatch = 18,
};

struct DeviceTag;
using Device = DeviceTag*;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
inline constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2U << 24);

struct Utilization {
  unsigned gpu;  ///< percent
  unsigned memory;
};

struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> bus_id;
};

struct ProcessV1 {
  unsigned pid;
  unsigned long long used_bytes;
};

/// Layout in versions 2 and 3 of the functions.
struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
inline constexpr unsigned long long kNotAvailable = ~0ULL;  ///< used_bytes if the driver does not know it

inline constexpr unsigned kTextBytes = 96;  ///< longest name, UUID or version
inline constexpr int kTemperatureGpu = 0;
inline constexpr unsigned kMigEnabled = 1;

/// A pointer is null if this driver's library lacks the function.
struct Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;  ///< 13000 is 13.0
  Return (*device_count)(unsigned*) = nullptr;
  Return (*device_by_index)(unsigned, Device*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*memory_v2)(Device, MemoryV2*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*temperature)(Device, int, unsigned*) = nullptr;
  Return (*power)(Device, unsigned*) = nullptr;
  Return (*compute_processes)(Device, unsigned*, Process*) = nullptr;
  Return (*graphics_processes)(Device, unsigned*, Process*) = nullptr;
  Return (*compute_processes_v1)(Device, unsigned*, ProcessV1*) = nullptr;
  Return (*graphics_processes_v1)(Device, unsigned*, ProcessV1*) = nullptr;
  Return (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  Return (*mig_count)(Device, unsigned*) = nullptr;
  Return (*mig_by_index)(Device, unsigned, Device*) = nullptr;
};

/// The loaded library.
class Library {
 public:
  /// An error if the library cannot be loaded, or lacks a function that every version has.
  static Result<std::unique_ptr<Library>> load(const std::string& name);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] const Functions& functions() const { return functions_; }
  /// "NVML: GPU is lost (15)".
  [[nodiscard]] std::string describe(Return code) const;

 private:
  explicit Library(void* handle);

  void* handle_;
  Functions functions_;
};

}  // namespace tidemark::nvml
