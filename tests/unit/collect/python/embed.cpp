// Embeds a Python that was loaded with RTLD_LOCAL, so that none of its symbols is global, and walks a stack in it.
// Usage: embed LIBPYTHON PROBE. Exit status 0 when the walker sees the two functions it was called from.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace {

// From Python's stable ABI, declared independently: enough to make a function that Python can call.
struct MethodDefinition {
  const char* name;
  void* (*function)(void*, void*);
  int flags;
  const char* doc;
};
constexpr int kNoArguments = 4;  // METH_NOARGS

void* python = nullptr;
void* probe = nullptr;
int detected_outside = -1;
int detected_inside = -1;
int count = -1;
char text[65536];

template <typename Function>
Function* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) std::fprintf(stderr, "no %s: %s\n", name, dlerror());
  return reinterpret_cast<Function*>(found);
}

void* walk(void*, void*) {
  detected_inside = symbol<int()>(probe, "probe_detect")();
  std::size_t length = 0;
  int truncated = 0;
  count = symbol<int(char*, std::size_t, std::size_t*, std::size_t, int*)>(probe, "probe_walk")(
      text, sizeof text - 1, &length, 100, &truncated);
  return symbol<void*(long)>(python, "PyLong_FromLong")(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  python = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  probe = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (python == nullptr || probe == nullptr || dlsym(RTLD_DEFAULT, "Py_GetVersion") != nullptr) {
    std::fprintf(stderr, "cannot load: %s\n", dlerror());
    return 2;
  }
  symbol<void()>(python, "Py_Initialize")();
  detected_outside = symbol<int()>(probe, "probe_detect")();  // no function runs: nothing to check the layout with
  static MethodDefinition definition{"walk", walk, kNoArguments, nullptr};
  void* main_module = symbol<void*(const char*)>(python, "PyImport_AddModule")("__main__");
  void* function =
      symbol<void*(MethodDefinition*, void*, void*)>(python, "PyCFunction_NewEx")(&definition, nullptr, nullptr);
  symbol<int(void*, const char*, void*)>(python, "PyObject_SetAttrString")(main_module, "walk", function);
  symbol<int(const char*)>(python, "PyRun_SimpleString")("def caller():\n  walk()\n\ncaller()\n");
  symbol<int()>(python, "Py_FinalizeEx")();
  const bool right = detected_outside == 0 && detected_inside == 1 && count == 2 &&
                     std::strcmp(text,
                                 "<string>\x1f"
                                 "caller\x1f"
                                 "2\x1e"
                                 "<string>\x1f<module>\x1f"
                                 "4\x1e") == 0;
  if (!right) std::printf("detected %d, then %d; %d frames: %s\n", detected_outside, detected_inside, count, text);
  return right ? 0 : 1;
}
