// Shared by the scenes of the test program.
#pragma once

#include <cstddef>
#include <string>

#include "driver_library.h"
#include "fakes/library.h"
#include "libraries.h"

namespace fakes {

inline constexpr std::size_t kKiB = 1 << 10;
inline constexpr std::size_t kMiB = 1 << 20;
inline constexpr std::int32_t kLocationHost = 2;  ///< CU_MEM_LOCATION_TYPE_HOST

/// The folder with the stand-ins for libraries.
extern std::string libraries;

template <typename Function>
Function* function_of(const char* library, const char* name) {
  return Library((libraries + "/" + library).c_str()).function<Function>(name);
}
#define FUNCTION_OF(library, name) ::fakes::function_of<decltype(::name)>(library, #name)

/// Starts the driver; the device's context is current on this thread.
void start(Device device = 0);
void use_device(Device device);
DevicePointer allocate(std::size_t bytes);
void free_block(DevicePointer address);
/// Random blocks that come and go; a few stay.
void plain_work(unsigned seed, int steps);
/// For cuMemCreate.
AllocationProperties on_device(Device device);

// Scenes: each returns the program's exit code.
int plain();
int through_libraries();
int host();
int vmm();
int graph();
int devices();
int reset();
int failing();
int failing_frees();
int graph_nodes();
int arrays();
int unknown_arrays();
int never_seen();
int pools();
int pools_elsewhere();
int many_pools();
int pool_threads();
int pools_come_and_go();
int threads();
int killed();
int forks();
int paused();
int pool_destroyed_in_pause();
int tool_before();
int tool_later();
int tool_by_handle();
int activities_by_handle();
int training();
int empty_cache();

}  // namespace fakes
