#include "analyze/ledger/memory_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/analyze/ledger_support.h"

namespace tidemark::testing {
namespace {

TEST(MemoryOwner, NamesLibrariesByTheirFiles) {
  EXPECT_EQ(library_name("/opt/torch/lib/libc10_cuda.so"), "PyTorch's allocator");
  EXPECT_EQ(library_name("/opt/torch/lib/libtorch_cuda.so"), "PyTorch");
  EXPECT_EQ(library_name("/usr/lib/libtorch.so.1.13"), "PyTorch");
  EXPECT_EQ(library_name("/usr/lib/libnccl.so.2.21.5"), "NCCL");
  EXPECT_EQ(library_name("/usr/lib/libcublasLt.so.12"), "cuBLAS");
  EXPECT_EQ(library_name("/usr/lib/libcudnn.so.9"), "cuDNN");
  EXPECT_EQ(library_name("/usr/lib/libcudnn_engines_precompiled.so.9"), "cuDNN");
  EXPECT_EQ(library_name("/x/libcublas-f6acd947.so.11"), "cuBLAS") << "as repaired wheels call it";
  EXPECT_EQ(library_name("/x/libtorchvision.so"), "libtorchvision") << "not PyTorch's own";
  EXPECT_EQ(library_name("/x/libmine.so.3"), "libmine");
  EXPECT_EQ(library_name("/x/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"), "flash_attn_2_cuda");
  EXPECT_EQ(library_name("/x/program"), "program");
  EXPECT_EQ(library_name("/x/.so"), ".so");
  EXPECT_TRUE(passes_calls_on("/usr/lib/x86_64-linux-gnu/libcuda.so.580.65"));
  EXPECT_TRUE(passes_calls_on("/x/libcudart-9335f6a2.so.12"));
  EXPECT_FALSE(passes_calls_on("/usr/lib/libcudadevrt.so"));
}

TEST(MemoryOwner, IsTheInnermostThatDoesNotOnlyPassOn) {
  Scenario scenario;
  const LocationId python = scenario.python("main", "train.py", 1);
  const LocationId torch = scenario.native("/torch/libtorch_cuda.so", 1);
  const LocationId nccl = scenario.native("/x/libnccl.so.2", 2);
  const LocationId cuda = scenario.native("/x/libcuda.so.1", 3);
  const StackId both = scenario.stack({python, torch, nccl, cuda});
  const StackId only_cuda = scenario.stack({python, cuda});
  const StackId only_python = scenario.stack({python});
  MemoryOwners owners(scenario.definitions);
  EXPECT_EQ(owners.name(owners.of(both)), "NCCL");
  EXPECT_EQ(owners.name(owners.of(only_cuda)), "unknown caller");
  EXPECT_EQ(owners.of(only_python), owners.of(only_cuda));
  EXPECT_EQ(owners.of({}), owners.of(only_cuda));
}

}  // namespace
}  // namespace tidemark::testing
