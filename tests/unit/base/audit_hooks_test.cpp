#include "base/audit_hooks.h"

#include <gtest/gtest.h>

#include <string_view>
#include <tuple>

namespace tidemark {
namespace {

int modules = 0;  // stands for the dict sys.modules
const char* imported = "";

void* get_object(const char* name) {
  return std::string_view(name) == "modules" ? &modules : nullptr;
}
void* get_item(void* dict, const char* key) {
  return dict == &modules && std::string_view(key) == imported ? &modules : nullptr;
}

// Its hook is there from CPython 3.12 on (filelock 4.3.1, _core/_fork.py).
TEST(AuditHooks, FilelocksHookDoesNotCount) {
  for (const auto& [version, module, expected] :
       {std::tuple("3.12.3 (main, Jun 1 2025)", "filelock", true), std::tuple("3.13.0", "filelock", true),
        std::tuple("3.11.2 (main)", "filelock", false), std::tuple("3.9.18", "filelock", false),
        std::tuple("3.12.3", "os", false), std::tuple("2.7.18", "filelock", false),
        std::tuple("", "filelock", false)}) {
    imported = module;
    EXPECT_EQ(is_hook_of_filelock(version, get_object, get_item), expected) << version << ' ' << module;
  }
  EXPECT_FALSE(is_hook_of_filelock(nullptr, get_object, get_item));
}

}  // namespace
}  // namespace tidemark
