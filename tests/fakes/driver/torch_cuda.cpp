// Fake libtorch_cuda.
#include "libraries.h"

void* fakes_pin(std::size_t bytes) {
  void* address = nullptr;
  return cudaHostAlloc(&address, bytes, 0) == 0 ? address : nullptr;
}

void fakes_unpin(void* address) {
  cudaFreeHost(address);
}

void fakes_register(void* address, std::size_t bytes) {
  cudaHostRegister(address, bytes, 0);
}

void fakes_unregister(void* address) {
  cudaHostUnregister(address);
}
