#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "collect/process/elf_dynamic.h"

namespace tidemark::process {
namespace {

using Function = int (*)(int);

int replacement(int value) {
  return value + 1000;
}

/// Addresses and protections of the mappings of the test's libraries.
std::string mapped() {
  std::ifstream maps("/proc/self/maps");
  std::string result;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libdefinitions_") != std::string::npos) result += line + "\n";
  }
  return result;
}

class RedirectDefinition : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] Function look_up(const char* name) const { return reinterpret_cast<Function>(dlsym(library_, name)); }
  bool redirect(const char* name) {
    return redirect_definition(reinterpret_cast<const void*>(look_up("slots_add_two")), name,
                               reinterpret_cast<void*>(replacement), &original_);
  }

  void* library_ = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
  void* original_ = nullptr;
};

TEST_P(RedirectDefinition, LookUpFindsReplacement) {
  ASSERT_NE(library_, nullptr) << dlerror();
  const Function before = look_up("slots_add_one");
  ASSERT_EQ(before(4), 5);
  const std::string pages = mapped();

  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::thread others([&] {  // the library's code runs, and is looked up
    while (!stop) {
      const int found = look_up("slots_add_one")(4);
      wrong += (found == 5 || found == 1004) && before(4) == 5 ? 0 : 1;
    }
  });
  EXPECT_TRUE(redirect("slots_add_one"));
  stop = true;
  others.join();
  EXPECT_EQ(wrong, 0);

  EXPECT_EQ(reinterpret_cast<Function>(original_), before);
  EXPECT_EQ(look_up("slots_add_one"), replacement);
  EXPECT_EQ(look_up("slots_add_two")(4), 6);
  EXPECT_EQ(mapped(), pages) << "protections are what they were";

  EXPECT_FALSE(redirect("slots_add_one")) << "a second time";
  EXPECT_EQ(reinterpret_cast<Function>(original_), before);
}

TEST_P(RedirectDefinition, IgnoresUndefinedSymbols) {
  EXPECT_FALSE(redirect("slots_no_such_function"));
  EXPECT_EQ(original_, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Layouts, RedirectDefinition, ::testing::Values(DEFINITIONS_separate, DEFINITIONS_joined),
                         [](const auto& path) {
                           return std::string(path.param).find("joined") != std::string::npos ? "joined" : "separate";
                         });

}  // namespace
}  // namespace tidemark::process
