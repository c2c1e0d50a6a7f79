// A library that stands between others and the driver, as libcudart.so.13 does.
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
