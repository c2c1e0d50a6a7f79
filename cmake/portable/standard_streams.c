// Debian's archives are compiled for programs: they access stderr and stdout at an address in their own program, which
// a Python module does not have. Here they are variables of the module, with the values of the C library's.
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("hidden"))) void* stderr;
__attribute__((visibility("hidden"))) void* stdout;

static void* stream(const char* name) {
  void** const variable = dlsym(RTLD_DEFAULT, name);
  return variable == NULL ? NULL : *variable;
}

__attribute__((constructor(101))) static void find_streams(void) {
  stderr = stream("stderr");
  stdout = stream("stdout");
}
