#include "plan/phantom_run.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace tidemark {
namespace {

// Why a PyTorch cannot be planned with.
std::string refusal(const InterpreterFacts& python) {
  const auto run = PhantomRun::create(python, {*find_gpu_profile("T4"), 1 << 30});
  return run ? "" : run.error().message;
}

TEST(PhantomRunTest, SaysWhichPyTorchItCannotPlanWith) {
  InterpreterFacts python;
  python.executable = "/usr/bin/python3";
  EXPECT_EQ(refusal(python), "/usr/bin/python3: has no PyTorch; install one with CUDA, such as `pip install torch`");
  const testing::TemporaryFolder folder;
  python.torch_folder = folder.path();
  python.torch_version = "2.9.0+rocm6.4";
  python.torch_hip = "6.4.43482";
  EXPECT_EQ(refusal(python), "PyTorch 2.9.0+rocm6.4 is built for ROCm; a plan needs a build for CUDA");
  python.torch_hip = "";
  python.torch_version = "2.9.0+cpu";
  EXPECT_EQ(refusal(python),
            "PyTorch 2.9.0+cpu is built without CUDA; a plan needs a build for CUDA, which needs no GPU");
  python.torch_version = "2.1.0+cu118";
  python.torch_cuda = "11.8";
  EXPECT_EQ(refusal(python), "PyTorch 2.1.0+cu118 is built for CUDA 11.8; a plan needs CUDA 12 or 13");
  python.torch_version = "2.30.0+cu140";
  python.torch_cuda = "14.0";
  EXPECT_EQ(refusal(python), "PyTorch 2.30.0+cu140 is built for CUDA 14.0; a plan needs CUDA 12 or 13");
}

}  // namespace
}  // namespace tidemark
