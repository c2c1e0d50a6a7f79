// Functions of the stand-ins for NVIDIA's libraries, for the test program. They use the device of the current context.
#pragma once

#include <cstddef>

extern "C" {

/// libnccl.so.2: communicators have 4 MiB of physical memory, mapped, and 1 MiB from cuMemAlloc.
void* fakes_nccl_open();
void fakes_nccl_close(void* communicator);

/// libcublasLt.so.13: a workspace of 32 MiB, taken through the runtime.
void* fakes_cublas_open();
void fakes_cublas_close(void* workspace);

/// libcudart.so.13. 0 is success, as in the real ones.
int cudaMalloc(void** address, std::size_t bytes);
int cudaFree(void* address);
int cudaGetDevice(int* device);
int cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
int cudaFreeHost(void* address);
int cudaHostRegister(void* address, std::size_t bytes, unsigned flags);
int cudaHostUnregister(void* address);
int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long flags,
                                     int* found);

/// libtorch_cuda.so: page-locked memory, like its allocator of host memory.
void* fakes_pin(std::size_t bytes);
void fakes_unpin(void* address);
void fakes_register(void* address, std::size_t bytes);
void fakes_unregister(void* address);

/// libtool.so, another profiler: subscribes to cuMemAlloc_v2 and counts its calls. Returns a CUptiResult.
int fakes_tool_subscribe();
/// The same, with the functions that dlsym() finds in the libcupti that it opens. Returns a CUptiResult.
int fakes_tool_subscribe_by_handle();
/// Registers for activity records with such functions.
int fakes_tool_activities_by_handle();
int fakes_tool_unsubscribe();
int fakes_tool_calls();
}
