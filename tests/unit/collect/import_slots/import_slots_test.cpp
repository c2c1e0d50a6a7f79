#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collect/process/elf_dynamic.h"

namespace tidemark::process {
namespace {

using Function = int (*)(int);

std::atomic<int> arrived = 0;
void* original_one = nullptr;
void* original_two = nullptr;

int forward(void** original, int value) {
  ++arrived;
  return reinterpret_cast<Function>(__atomic_load_n(original, __ATOMIC_ACQUIRE))(value);
}

int replacement_one(int value) {
  return forward(&original_one, value);
}
int replacement_two(int value) {
  return forward(&original_two, value);
}

/// Libraries stay loaded: a slot may point into them until the process ends. RTLD_LOCAL, as Python loads its
/// extensions.
void* open_library(const char* path) {
  void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  return handle;
}

Function function(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// Begin and protection of all mappings of the test's libraries.
std::string protections() {
  std::ifstream maps("/proc/self/maps");
  std::string result;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libslots_") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, access;
    words >> range >> access;
    result += range + " " + access + "\n";
  }
  return result;
}

std::size_t patch_one() {
  return patch_import_slots("slots_add_one", reinterpret_cast<void*>(replacement_one), &original_one);
}

/// One call through `call`: the number of calls that reached the replacement. The result must be the original
/// function's.
int arrivals(Function call, int expected) {
  arrived = 0;
  EXPECT_EQ(call(4), expected);
  return arrived;
}

TEST(ImportSlots, PatchesEveryKindOfSlotOnce) {
  void* now = open_library(SLOTS_now);
  void* lazy = open_library(SLOTS_lazy);
  void* no_plt = open_library(SLOTS_no_plt);
  void* provider = open_library(SLOTS_provider);
  const std::vector<Function> callers = {function(now, "call_one"), function(lazy, "call_one"),
                                         function(no_plt, "call_one")};
  const Function inside = function(provider, "slots_provider_calls");
  for (const Function call : {callers[0], callers[2]}) EXPECT_EQ(arrivals(call, 50), 0);

  const std::string before = protections();
  EXPECT_NE(before.find("r--p"), std::string::npos);
  ASSERT_EQ(patch_one(), 4u);  // the three callers, and the provider's own call
  EXPECT_EQ(protections(), before);
  EXPECT_EQ(original_one, dlsym(provider, "slots_add_one"));
  for (const Function call : callers) EXPECT_EQ(arrivals(call, 50), 1);
  EXPECT_EQ(arrivals(inside, 5), 1);
  EXPECT_EQ(arrivals(function(now, "call_two"), 60), 0);  // another symbol

  EXPECT_EQ(patch_one(), 4u);
  EXPECT_EQ(original_one, dlsym(provider, "slots_add_one"));
  for (const Function call : callers) EXPECT_EQ(arrivals(call, 50), 1);

  void* late = open_library(SLOTS_late);
  EXPECT_EQ(arrivals(function(late, "call_one"), 50), 0);
  EXPECT_EQ(patch_one(), 5u);
  EXPECT_EQ(arrivals(function(late, "call_one"), 50), 1);
}

// It was not called yet: every slot points to a PLT, and only the symbol tables have the function.
TEST(ImportSlots, FindsTheOriginalOfAnUnboundSlot) {
  void* lazy = open_library(SLOTS_lazy);
  void* provider = open_library(SLOTS_provider);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "slots_add_two"), nullptr);  // not in the global scope
  EXPECT_GE(patch_import_slots("slots_add_two", reinterpret_cast<void*>(replacement_two), &original_two), 1u);
  EXPECT_EQ(original_two, dlsym(provider, "slots_add_two"));
  EXPECT_EQ(arrivals(function(lazy, "call_two"), 60), 1);
}

/// Replacement and original of patch_imports_of().
std::atomic<void*> original_of_library = nullptr;

int replacement_of_library(int value) {
  ++arrived;
  return reinterpret_cast<Function>(original_of_library.load())(value);
}

class OneLibraryTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

// Bound at once, without a PLT, or not bound yet.
TEST_P(OneLibraryTest, PatchesItsImportsAlone) {
  const auto [name, path] = GetParam();
  void* provider = open_library(SLOTS_provider);
  std::vector<Function> others;
  for (const char* other : {SLOTS_now, SLOTS_lazy, SLOTS_no_plt}) {
    void* library = open_library(other);
    if (std::string(other) != path) others.push_back(function(library, "call_one"));
  }
  const Function call = function(open_library(path), "call_one");
  const Import imports[] = {{"slots_add_one", reinterpret_cast<void*>(replacement_of_library), &original_of_library}};
  const std::string before = protections();
  for (int round = 0; round < 2; ++round) {
    const LibraryRange range = patch_imports_of(name, imports);
    EXPECT_LE(range.begin, reinterpret_cast<std::uintptr_t>(call));
    EXPECT_GT(range.end, reinterpret_cast<std::uintptr_t>(call));
    EXPECT_EQ(original_of_library, dlsym(provider, "slots_add_one"));
    EXPECT_EQ(arrivals(call, 50), 1);
    for (const Function other : others) EXPECT_EQ(arrivals(other, 50), 0);
    EXPECT_EQ(arrivals(function(provider, "slots_provider_calls"), 5), 0);
  }
  EXPECT_EQ(protections(), before);
}

INSTANTIATE_TEST_SUITE_P(ImportSlots, OneLibraryTest,
                         ::testing::Values(std::pair("libslots_now.so", SLOTS_now),
                                           std::pair("libslots_lazy.so", SLOTS_lazy),
                                           std::pair("libslots_no_plt.so", SLOTS_no_plt)));

TEST(ImportSlots, OnlyLooksUpImportsWithoutReplacement) {
  void* provider = open_library(SLOTS_provider);
  const Function call = function(open_library(SLOTS_lazy), "call_one");
  std::atomic<void*> known = nullptr;
  std::atomic<void*> unknown = nullptr;
  const Import imports[] = {{"slots_add_one", nullptr, &known}, {"slots_no_such_function", nullptr, &unknown}};
  EXPECT_EQ(patch_imports_of("libslots_no_such_library.so", imports).end, 0U);
  EXPECT_EQ(known, nullptr);
  patch_imports_of("libslots_lazy.so", imports);
  EXPECT_EQ(known, dlsym(provider, "slots_add_one"));
  EXPECT_EQ(unknown, nullptr);
  EXPECT_EQ(arrivals(call, 50), 0);
}

TEST(ImportSlots, IgnoresUndefinedSymbols) {
  void* original = nullptr;
  EXPECT_EQ(patch_import_slots("slots_no_such_function", reinterpret_cast<void*>(replacement_one), &original), 0u);
  EXPECT_EQ(original, nullptr);
}

TEST(ImportSlots, CallsGoOnWhileSlotsArePatched) {
  std::vector<Function> callers;
  for (const char* path : {SLOTS_now, SLOTS_lazy, SLOTS_no_plt}) {
    callers.push_back(function(open_library(path), "call_one"));
  }
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        for (const Function call : callers) wrong += call(4) == 50 ? 0 : 1;
      }
    });
  }
  std::vector<std::thread> patchers;
  for (int i = 0; i < 2; ++i) {
    patchers.emplace_back([] {
      for (int round = 0; round < 50; ++round) EXPECT_GE(patch_one(), 3u);
    });
  }
  for (auto& thread : patchers) thread.join();
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tidemark::process
