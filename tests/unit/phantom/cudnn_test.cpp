// cuDNN's functions as PyTorch calls them. Numbers of attributes and types are those of cudnn_graph.h.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace tidemark::phantom {
namespace {

constexpr int kInt64 = 3;
constexpr int kDataType = 1;
constexpr int kDescriptor = 15;

using Descriptor = void*;

class Cudnn : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tidemark_cudnn_test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "device") << "name NVIDIA H200\nmemory 150121545728\nmajor 9\nminor 0\nmultiprocessors 132\n"
                                        "cudnn_version 91900\n";
    ASSERT_EQ(setenv("TIDEMARK_PHANTOM", folder.c_str(), 1), 0);
    library_ = dlopen(TIDEMARK_PHANTOM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  void TearDown() override {
    for (const Descriptor descriptor : created_) function<int(Descriptor)>("cudnnBackendDestroyDescriptor")(descriptor);
  }

  template <typename Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  [[nodiscard]] Descriptor create(int type) {
    Descriptor descriptor = nullptr;
    EXPECT_EQ(function<int(int, Descriptor*)>("cudnnBackendCreateDescriptor")(type, &descriptor), 0);
    created_.push_back(descriptor);
    return descriptor;
  }
  void set(Descriptor descriptor, int name, int type, std::int64_t count, const void* elements) const {
    using Set = int(Descriptor, int, int, std::int64_t, const void*);
    EXPECT_EQ(function<Set>("cudnnBackendSetAttribute")(descriptor, name, type, count, elements), 0);
  }
  void set(Descriptor descriptor, int name, const std::vector<std::int64_t>& values) const {
    set(descriptor, name, kInt64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(Descriptor descriptor, int name, Descriptor value) const { set(descriptor, name, kDescriptor, 1, &value); }
  [[nodiscard]] int finalize(Descriptor descriptor) const {
    return function<int(Descriptor)>("cudnnBackendFinalize")(descriptor);
  }
  [[nodiscard]] Descriptor tensor(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
    const int type = 9;                        // CUDNN_DATA_BFLOAT16
    const Descriptor descriptor = create(17);  // CUDNN_BACKEND_TENSOR_DESCRIPTOR
    set(descriptor, 901, kDataType, 1, &type);
    set(descriptor, 902, sizes);
    set(descriptor, 903, strides);
    EXPECT_EQ(finalize(descriptor), 0);
    return descriptor;
  }
  [[nodiscard]] Descriptor from(int type, int name, Descriptor source) {
    const Descriptor descriptor = create(type);
    set(descriptor, name, source);
    EXPECT_EQ(finalize(descriptor), 0);
    return descriptor;
  }

 private:
  void* library_ = nullptr;
  std::vector<Descriptor> created_;
};

TEST_F(Cudnn, PlanOfAConvolutionHasTheMeasuredWorkspace) {
  const Descriptor parameters = create(1);  // CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR
  for (const int name : {102, 103, 104, 105}) set(parameters, name, {1, 1});
  EXPECT_EQ(finalize(parameters), 0);
  const std::vector<std::int64_t> image = {8, 64, 224, 224};
  for (const bool channels_last : {false, true}) {
    constexpr std::int64_t kPixels = 224L * 224;
    const Descriptor x = tensor(image, channels_last ? std::vector<std::int64_t>{64 * kPixels, 1, 224L * 64, 64}
                                                     : std::vector<std::int64_t>{64 * kPixels, kPixels, 224, 1});
    const Descriptor w = tensor({64, 64, 3, 3}, {576, 9, 3, 1});
    const Descriptor operation = create(11);  // CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
    set(operation, 714, parameters);
    set(operation, 715, w);
    set(operation, 716, x);
    EXPECT_EQ(finalize(operation), 0);
    const Descriptor graph = from(15, 801, operation);
    const Descriptor engine = from(2, 1300, graph);
    const Descriptor plan = from(5, 401, from(3, 300, engine));
    std::int64_t bytes = -1;
    std::int64_t count = 0;
    using Get = int(Descriptor, int, int, std::int64_t, std::int64_t*, void*);
    EXPECT_EQ(function<Get>("cudnnBackendGetAttribute")(plan, 402, kInt64, 1, &count, &bytes), 0);
    EXPECT_EQ(bytes, channels_last ? 1917591 : 104751783);
  }
}

// PyTorch's choice among free blocks of one size depends on it: with it the sequences of ResNet-50 and MobileNetV3 are
// those of an H200.
TEST_F(Cudnn, FirstHandleMovesTheStacksOfKernels) {
  auto* const allocate = function<int(char**, std::size_t)>("cudaMalloc");
  constexpr std::size_t kBytes = 2 << 20;
  char* before = nullptr;
  char* after = nullptr;
  EXPECT_EQ(allocate(&before, kBytes), 0);
  void* handle = nullptr;
  EXPECT_EQ(function<int(void**)>("cudnnCreate")(&handle), 0);
  EXPECT_EQ(allocate(&after, kBytes), 0);
  // Not from the same region of the driver, which has a free place 74 MiB above the first.
  EXPECT_GT(after - before, 128 << 20);
}

TEST_F(Cudnn, ConvolutionWithoutItsPartsFails) {
  EXPECT_NE(finalize(create(10)), 0);
}

TEST_F(Cudnn, BatchNormalizationOfContiguousImagesTakesNoWorkspace) {
  using Backward = int(void*, int, int, void*, void*, void*, void*, void*, void*, void*, std::size_t*);
  std::size_t bytes = 1;
  auto* const backward = function<Backward>("cudnnGetBatchNormalizationBackwardExWorkspaceSize");
  EXPECT_EQ(backward(nullptr, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &bytes), 0);
  EXPECT_EQ(bytes, 0);
}

}  // namespace
}  // namespace tidemark::phantom
