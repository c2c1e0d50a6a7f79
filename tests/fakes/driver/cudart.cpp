// A library between others and the driver, like libcudart.so.13.
#include "driver_library.h"
#include "libraries.h"

int cudaMalloc(void** address, std::size_t bytes) {
  fakes::DevicePointer pointer = 0;
  const fakes::Result result = DRIVER(cuMemAlloc_v2)(&pointer, bytes);
  *address = reinterpret_cast<void*>(pointer);
  return result;
}

int cudaFree(void* address) {
  return DRIVER(cuMemFree_v2)(reinterpret_cast<std::uintptr_t>(address));
}

int cudaGetDevice(int* device) {
  return DRIVER(cuCtxGetDevice)(device);
}

int cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return DRIVER(cuMemHostAlloc)(address, bytes, flags);
}

int cudaFreeHost(void* address) {
  return DRIVER(cuMemFreeHost)(address);
}

int cudaHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return DRIVER(cuMemHostRegister_v2)(address, bytes, flags);
}

int cudaHostUnregister(void* address) {
  return DRIVER(cuMemHostUnregister)(address);
}

int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned /*version*/,
                                     unsigned long long /*flags*/, int* found) {
  *function = fakes::driver_function(name);
  *found = 0;
  return 0;
}
