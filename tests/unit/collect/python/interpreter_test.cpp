// This program acts as an interpreter: it exports an interpreter's symbols, and the version text that each test needs.
#include "collect/process/python/interpreter.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "collect/process/python/python_walker.h"

namespace {
const char* version_text = "";
int eval_calls = 0;
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the interpreter's names.
extern "C" {
const char* Py_GetVersion() {
  return version_text;
}
void* PyGILState_GetThisThreadState() {
  return nullptr;
}
void* _PyThreadState_UncheckedGet() {
  return nullptr;
}
void* PyThreadState_GetInterpreter(void* state) {
  return state;
}
int _Py_IsFinalizing() {
  return 0;
}
void* PyCode_Type = nullptr;
void* _PyEval_EvalFrameDefault(void* state) {
  return ++eval_calls > 0 ? state : nullptr;
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace tidemark::process {
namespace {

Interpreter find(const char* text) {
  version_text = text;
  Interpreter interpreter{};
  EXPECT_TRUE(find_interpreter(&interpreter));
  return interpreter;
}

TEST(FindInterpreter, ReadsTheVersion) {
  const Interpreter release = find("3.11.7 (main, Dec  4 2023, 18:10:11) [GCC 12.2.0]");
  EXPECT_EQ(release.version, 0x030B);
  EXPECT_STREQ(release.version_text, "3.11.7");
  EXPECT_TRUE(release.ordinary);
  const Interpreter candidate = find("3.14.0rc2+ (main, Aug 14 2025, 11:00:00) [Clang 20.1.8 ]");
  EXPECT_EQ(candidate.version, 0x030E);
  EXPECT_STREQ(candidate.version_text, "3.14.0rc2+");
  EXPECT_EQ(find("3.9.18").version, 0x0309);
}

TEST(FindInterpreter, SurvivesOddVersions) {
  EXPECT_EQ(find("").version, 0);
  EXPECT_EQ(find("three").version, 0);
  EXPECT_EQ(find("99999999999.3 ()").version, 0);
  EXPECT_STREQ(find("3.11.7.and.something.very.long.indeed (main)").version_text, "3.11.7.and.something.ve");
}

TEST(FindInterpreter, FreeThreadedBuildsAreNotOrdinary) {
  EXPECT_FALSE(find("3.13.0 experimental free-threading build (main, Oct  7 2024) [GCC 13]").ordinary);
  const Interpreter later = find("3.14.0 free-threading build (main, Oct 10 2025) [GCC 14]");
  EXPECT_FALSE(later.ordinary);
  EXPECT_EQ(later.version, 0x030E);
}

// The stand-in is far smaller than a whole eval function: all code of this program is taken.
TEST(FindInterpreter, EvalRangeOfAFunctionInPieces) {
  const Interpreter interpreter = find("3.11.7 ()");
  const auto code_at = [](auto* function) { return reinterpret_cast<std::uintptr_t>(function); };
  EXPECT_LE(interpreter.eval_low, code_at(&_PyEval_EvalFrameDefault));
  EXPECT_GT(interpreter.eval_high, code_at(&_PyEval_EvalFrameDefault));
  EXPECT_LE(interpreter.eval_low, code_at(&Py_GetVersion));
  EXPECT_GT(interpreter.eval_high, code_at(&find_interpreter));
  const auto elsewhere = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "getppid"));
  EXPECT_TRUE(elsewhere < interpreter.eval_low || elsewhere >= interpreter.eval_high);
}

// The walker has one state for the process, so this order is one test.
TEST(PythonDetect, AbsentUntilFoundAndFinalOnceUnsupported) {
  version_text = "3.15.2 (main) [GCC 16]";
  std::uintptr_t low = 1, high = 1;
  python_eval_range(&low, &high);
  EXPECT_EQ(low + high, 0U);
  EXPECT_EQ(python_minor_version(), 0);
  EXPECT_STREQ(python_version_text(), "");
  EXPECT_EQ(python_detect(), PythonSupport::unsupported);
  EXPECT_EQ(python_minor_version(), 0x030F);
  EXPECT_STREQ(python_version_text(), "3.15.2");
  version_text = "3.11.7 (main)";
  EXPECT_EQ(python_detect(), PythonSupport::unsupported);
  PythonFrame frame{};
  bool truncated = true;
  EXPECT_EQ(python_walk(&frame, 1, &truncated), 0U);
  EXPECT_FALSE(truncated);
  PythonCode code{};
  EXPECT_FALSE(python_describe(0, &code));
}

}  // namespace
}  // namespace tidemark::process
