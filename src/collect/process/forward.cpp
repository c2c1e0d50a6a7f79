#include "collect/process/forward.h"

#include <dlfcn.h>
#include <errno.h>

#include "collect/process/describe.h"

namespace tidemark::process {

void* find_next_definition(const char* symbol, const void* caller, const void* self) noexcept {
  const int saved = errno;
  void* found = nullptr;
  Dl_info info = {};
  if (::dladdr(caller, &info) != 0 && info.dli_fname != nullptr) {
    // The handle is kept: what it leads to must stay loaded as long as we call it.
    void* library = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = ::dlsym(library, symbol);
  }
  if (found == nullptr || found == self) found = ::dlsym(RTLD_NEXT, symbol);
  if (found == self) found = nullptr;
  if (found != nullptr && ::dladdr(found, &info) != 0 && info.dli_fname != nullptr) {
    set_reporting_library(info.dli_fname);
  }
  errno = saved;
  return found;
}

}  // namespace tidemark::process
