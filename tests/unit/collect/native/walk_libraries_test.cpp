#include <dlfcn.h>
#include <gtest/gtest.h>

#include "capture.h"
#include "collect/process/native/unwinder.h"

namespace tidemark::process {
namespace {

using PluginCall = void (*)(void (*)(void*), void*);

struct Plugin {
  explicit Plugin(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle != nullptr) call = reinterpret_cast<PluginCall>(dlsym(handle, "plugin_call"));
  }
  ~Plugin() { dlclose(handle); }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  void* handle;
  PluginCall call = nullptr;
};

TEST(NativeWalkLibraries, AgreesWithBacktraceThroughALoadedLibrary) {
  for (const char* path : {PLUGIN_SHALLOW, PLUGIN_DEEP}) {
    const Plugin plugin(path);
    ASSERT_NE(plugin.call, nullptr) << dlerror();
    Stacks stacks;
    plugin.call(capture_into, &stacks);
    EXPECT_EQ(stacks.ours, stacks.theirs);
  }
}

// The loader usually maps the second library at the place of the first one, and its call then has the same return
// address but a frame of another size.
TEST(NativeWalkLibraries, ForgetsALibraryThatIsGone) {
  for (int round = 0; round < 4; ++round) {
    const Plugin plugin(round % 2 == 0 ? PLUGIN_SHALLOW : PLUGIN_DEEP);
    ASSERT_NE(plugin.call, nullptr) << dlerror();
    native_forget();
    Stacks stacks;
    plugin.call(capture_into, &stacks);
    EXPECT_EQ(stacks.ours, stacks.theirs);
  }
}

TEST(NativeWalkLibraries, SurvivesStaleRules) {
  for (int round = 0; round < 4; ++round) {
    const Plugin plugin(round % 2 == 0 ? PLUGIN_SHALLOW : PLUGIN_DEEP);
    ASSERT_NE(plugin.call, nullptr) << dlerror();
    Stacks stacks;
    plugin.call(capture_into, &stacks);
    ASSERT_GE(stacks.ours.size(), 2u);
    EXPECT_EQ(stacks.ours[1], stacks.theirs[1]);  // the library's frame itself needs no rule of the library
  }
  native_forget();
}

}  // namespace
}  // namespace tidemark::process
