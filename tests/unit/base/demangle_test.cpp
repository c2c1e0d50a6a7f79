#include "base/demangle.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(Demangle, LeavesOtherNamesAlone) {
  EXPECT_EQ(demangle("_ZN2at6native9empty_cpuEv"), "at::native::empty_cpu()");
  EXPECT_EQ(demangle("malloc"), "malloc");
  EXPECT_EQ(demangle("_Z!"), "_Z!");
}

TEST(Demangle, NamesTypes) {
  EXPECT_EQ(demangle("_ZN5torch8autograd9generated14AddmmBackward0E"), "torch::autograd::generated::AddmmBackward0");
  EXPECT_EQ(demangle("_ZN5torch8autograd7CppNodeI5ScaleEE"), "torch::autograd::CppNode<Scale>");
  EXPECT_EQ(demangle("_Z4Node"), "Node");
}

}  // namespace
}  // namespace tidemark
