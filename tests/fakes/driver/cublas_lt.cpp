// A library with a workspace, like libcublasLt.so.13.
#include "libraries.h"

void* fakes_cublas_open() {
  void* workspace = nullptr;
  return cudaMalloc(&workspace, 32 << 20) == 0 ? workspace : nullptr;
}

void fakes_cublas_close(void* workspace) {
  cudaFree(workspace);
}
