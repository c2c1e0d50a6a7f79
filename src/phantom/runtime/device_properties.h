// cudaDeviceProp in the layouts of CUDA 12 and CUDA 13, which removed fields that attributes replaced.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "phantom/gpu/attributes.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {

/// A field of CUDA 12 only: of no size in CUDA 13. Each has a distinct number, because empty members of one type would
/// not share an address.
template <bool kThere, int kNumber>
struct Cuda12Field {
  int value;
};
template <int kNumber>
struct Cuda12Field<false, kNumber> {};

/// cudaDeviceProp.
template <bool kCuda12>
struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  std::size_t total_memory;
  std::size_t shared_per_block;
  int registers_per_block;
  int warp_size;
  std::size_t memory_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  [[no_unique_address]] Cuda12Field<kCuda12, 1> clock_khz;
  std::size_t total_constant;
  int major;
  int minor;
  std::size_t texture_alignment;
  std::size_t texture_pitch_alignment;
  [[no_unique_address]] Cuda12Field<kCuda12, 2> device_overlap;
  int multiprocessors;
  [[no_unique_address]] Cuda12Field<kCuda12, 3> kernel_timeout;
  int integrated;
  int can_map_host_memory;
  [[no_unique_address]] Cuda12Field<kCuda12, 4> compute_mode;
  int textures_and_surfaces[kCuda12 ? 39 : 38];
  std::size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus;
  int pci_device;
  int pci_domain;
  int tcc_driver;
  int async_engines;
  int unified_addressing;
  [[no_unique_address]] Cuda12Field<kCuda12, 5> memory_clock_khz;
  int memory_bus_bits;
  int l2_cache;
  int persisting_l2_cache;
  int threads_per_multiprocessor;
  int stream_priorities;
  int global_l1_cache;
  int local_l1_cache;
  std::size_t shared_per_multiprocessor;
  int registers_per_multiprocessor;
  int managed_memory;
  int is_multi_gpu_board;
  int multi_gpu_board_group;
  int host_native_atomic;
  [[no_unique_address]] Cuda12Field<kCuda12, 6> single_to_double_ratio;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption;
  int host_pointer_for_registered;
  int cooperative_launch;
  [[no_unique_address]] Cuda12Field<kCuda12, 7> cooperative_multi_device_launch;
  std::size_t shared_per_block_optin;
  int pageable_memory_host_tables;
  int direct_managed_access;
  int blocks_per_multiprocessor;
  int access_policy_window;
  std::size_t reserved_shared_per_block;
  int host_register_supported;
  int sparse_array_supported;
  int host_register_read_only;
  int timeline_semaphores;
  int memory_pools_supported;
  int rest[70];
};
using DeviceProperties12 = DeviceProperties<true>;  ///< of cudaGetDeviceProperties_v2
using DeviceProperties13 = DeviceProperties<false>;

/// Fills either layout from the profile. Values missing from the profile are 0.
template <typename Properties>
Properties device_properties(int device) {
  const Profile& gpu = profile();
  Properties properties;
  std::memset(&properties, 0, sizeof properties);
  std::snprintf(properties.name, sizeof properties.name, "%s", gpu.name.c_str());
  write_uuid(properties.uuid, physical_device(device));
  properties.total_memory = gpu.memory;
  properties.shared_per_block = static_cast<std::size_t>(gpu.shared_per_block);
  properties.registers_per_block = 65536;
  properties.warp_size = 32;
  properties.memory_pitch = 2147483647;
  properties.max_threads_per_block = 1024;
  properties.max_threads_dim[0] = properties.max_threads_dim[1] = 1024;
  properties.max_threads_dim[2] = 64;
  properties.max_grid_size[0] = 2147483647;
  properties.max_grid_size[1] = properties.max_grid_size[2] = 65535;
  properties.total_constant = 65536;
  properties.major = gpu.major;
  properties.minor = gpu.minor;
  properties.texture_alignment = 512;
  properties.texture_pitch_alignment = 32;
  properties.multiprocessors = gpu.multiprocessors;
  properties.can_map_host_memory = 1;
  properties.concurrent_kernels = 1;
  properties.pci_bus = physical_device(device) + 1;
  properties.async_engines = 3;
  properties.unified_addressing = 1;
  properties.memory_bus_bits = gpu.memory_bus_bits;
  properties.l2_cache = gpu.l2_cache;
  properties.persisting_l2_cache = gpu.l2_cache / 2;
  properties.threads_per_multiprocessor = gpu.threads_per_multiprocessor;
  properties.stream_priorities = 1;
  properties.global_l1_cache = properties.local_l1_cache = 1;
  properties.shared_per_multiprocessor = static_cast<std::size_t>(gpu.shared_per_multiprocessor);
  properties.registers_per_multiprocessor = gpu.registers_per_multiprocessor;
  properties.managed_memory = properties.concurrent_managed_access = 1;
  properties.compute_preemption = properties.host_pointer_for_registered = 1;
  properties.cooperative_launch = 1;
  properties.shared_per_block_optin = static_cast<std::size_t>(gpu.shared_per_block_optin);
  properties.blocks_per_multiprocessor = gpu.blocks_per_multiprocessor;
  properties.reserved_shared_per_block = 1024;
  properties.host_register_supported = properties.memory_pools_supported = 1;
  return properties;
}

}  // namespace tidemark::phantom
