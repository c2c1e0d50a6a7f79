// The fakes as used by the test program: loaded at run time with local scope, as Python loads PyTorch.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "c10.h"
#include "device_allocator.h"

/// Exits when the library cannot be loaded.
class Library {
 public:
  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(98);
  }

  template <typename Function>
  Function* function(const char* name) const {
    void* found = ::dlsym(handle_, name);
    if (found == nullptr) std::exit(97);
    return reinterpret_cast<Function*>(found);
  }
  void close() { ::dlclose(handle_); }

 private:
  void* handle_;
};

/// libc10_cuda, and its dependency libc10.
struct Torch {
  explicit Torch(const Library& library)
      : allocate(library.function<decltype(fakes_allocate)>("fakes_allocate")),
        free(library.function<decltype(fakes_free)>("fakes_free")),
        fail(library.function<decltype(fakes_fail)>("fakes_fail")),
        empty_cache(library.function<decltype(fakes_empty_cache)>("fakes_empty_cache")),
        counters(library.function<decltype(fakes_counters)>("fakes_counters")),
        report(library.function<decltype(fakes_report)>("fakes_report")),
        mark(library.function<decltype(fakes_mark)>("fakes_mark")),
        cpu_allocate(library.function<decltype(fakes_cpu_allocate)>("fakes_cpu_allocate")),
        cpu_free(library.function<decltype(fakes_cpu_free)>("fakes_cpu_free")),
        cpu_fail(library.function<decltype(fakes_cpu_fail)>("fakes_cpu_fail")),
        profile(library.function<decltype(fakes_profile)>("fakes_profile")) {}

  decltype(fakes_allocate)* allocate;
  decltype(fakes_free)* free;
  decltype(fakes_fail)* fail;
  decltype(fakes_empty_cache)* empty_cache;
  decltype(fakes_counters)* counters;
  decltype(fakes_report)* report;
  decltype(fakes_mark)* mark;
  decltype(fakes_cpu_allocate)* cpu_allocate;
  decltype(fakes_cpu_free)* cpu_free;
  decltype(fakes_cpu_fail)* cpu_fail;
  decltype(fakes_profile)* profile;
};
