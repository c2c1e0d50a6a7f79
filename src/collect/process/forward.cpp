#include "collect/process/forward.h"

#include <dlfcn.h>
#include <errno.h>

#include "collect/process/elf_dynamic.h"

namespace tidemark::process {
namespace {

/// Among the dependencies of the library that contains `caller`.
void* find_through(const void* caller, const char* symbol) noexcept {
  Dl_info info = {};
  if (::dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* library = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = ::dlsym(library, symbol);
  ::dlclose(library);  // the caller is loaded anyway
  return found;
}

struct Search {
  const char* symbol;
  void* found;
};

int search_object(dl_phdr_info* info, std::size_t /*size*/, void* argument) noexcept {
  auto* search = static_cast<Search*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object)) return 0;
  if (find_definition(object, "tidemark_attach") != nullptr) return 0;  // this library, or another copy of it
  search->found = find_definition(object, search->symbol);
  return search->found != nullptr ? 1 : 0;
}

/// Anywhere in the process: a caller that ends in a tail call leaves no trace, and what the hook then returns to may
/// have nothing to do with c10.
void* find_anywhere(const char* symbol) noexcept {
  Search search = {symbol, nullptr};
  ::dl_iterate_phdr(search_object, &search);
  return search.found;
}

}  // namespace

void* find_next_definition(const char* symbol, const void* caller, const void* self) noexcept {
  const int saved = errno;
  void* found = find_through(caller, symbol);
  if (found == nullptr || found == self) found = ::dlsym(RTLD_NEXT, symbol);
  if (found == nullptr || found == self) found = find_anywhere(symbol);
  Dl_info info = {};
  if (found != nullptr && ::dladdr(found, &info) != 0 && info.dli_fname != nullptr) {
    // The handle is kept: the definition must stay loaded as long as we call it.
    void* const kept = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    (void)kept;
  }
  errno = saved;
  return found;
}

}  // namespace tidemark::process
