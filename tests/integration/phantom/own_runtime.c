// Starts like a CUDA runtime inside a library: looks up the functions of the driver.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

int start(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return -1;
  int (*find)(const char*, void**, int, uint64_t, int*) = dlsym(driver, "cuGetProcAddress_v2");
  const char* const names[] = {"", "cuInit", "cuArrayCreate", "cuGraphAddMemAllocNode"};
  int missing = 0;
  for (size_t index = 0; index < sizeof names / sizeof *names; ++index) {
    void* function = NULL;
    if (find(names[index], &function, 13000, 0, NULL) != 0) ++missing;
  }
  return missing;
}
