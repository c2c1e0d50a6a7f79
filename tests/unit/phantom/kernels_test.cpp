// The code of kernels in files written by NVIDIA's compiler (tests/data/kernels/kernel.cu). Expected values are results
// of cuFuncGetAttribute and cuOccupancyMaxActiveBlocksPerMultiprocessor for these files, and for kernels of PyTorch
// 2.11, on an H200 (driver 580.159); for the files of CUDA 12, of cuobjdump -res-usage.
#include "phantom/gpu/kernels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "phantom/gpu/device_code.h"
#include "unit/phantom/counted.h"

namespace tidemark::phantom {
namespace {

std::string contents(const std::string& name) {
  std::ifstream file(std::string(TIDEMARK_KERNELS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The argument of __cudaRegisterFatBinary.
struct Wrapper {
  explicit Wrapper(const std::string& bytes) : fat_binary(bytes.data()) {}
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const char* fat_binary;
  void* unused = nullptr;
};

FunctionAttributes attributes_in(const std::string& bytes) {
  static char hosts[16];
  static int used = 0;
  const Wrapper wrapper(bytes);
  const void* const host = &hosts[used++];
  register_kernel(register_fat_binary(&wrapper), host, "k");
  return kernel_attributes(host);
}

TEST(Kernels, AttributesComeFromCompressedCode) {
  const FunctionAttributes kernel = attributes_in(contents("zstd.fatbin"));
  EXPECT_EQ(kernel.shared_bytes, 300U);
  EXPECT_EQ(kernel.constant_bytes, 400U);
  EXPECT_EQ(kernel.local_bytes, 200U);
  EXPECT_EQ(kernel.registers, 12);
  EXPECT_EQ(kernel.ptx_version, 90);
  EXPECT_EQ(kernel.binary_version, 90);
  EXPECT_EQ(kernel.max_threads_per_block, 96);
  EXPECT_EQ(kernel.max_dynamic_shared_bytes, 48852);
}

TEST(Kernels, AttributesComeFromCodeOfCuda12) {
  const std::string bytes = contents("lz4.fatbin");
  const Wrapper wrapper(bytes);
  const auto code = choose_code(&wrapper, 9, 0);
  ASSERT_TRUE(code);
  const Cubin cubin = read_cubin(code->cubin);
  ASSERT_EQ(cubin.kernels.size(), 1U);
  const KernelNeeds& kernel = cubin.kernels.at("_ZN2at4cuda40_GLOBAL__N__758183f4_8_Sleep_cu_088d913f11spin_kernelEl");
  EXPECT_EQ(kernel.registers, 12);
  EXPECT_EQ(kernel.shared_bytes, 0U);
  EXPECT_EQ(kernel.local_bytes, 0U);
}

TEST(Kernels, OfAModuleHaveTheAttributesOfTheirCode) {
  const Handle module = load_module(contents("cuda12.cubin").data());
  const Handle kernel = module_kernel(module, "k");
  ASSERT_NE(kernel, nullptr);
  EXPECT_NE(kernel, module_kernel(module, "k"));
  EXPECT_EQ(kernel_attributes(kernel).registers, 10);
  EXPECT_EQ(kernel_attributes(kernel).shared_bytes, 300U);
  EXPECT_EQ(module_kernel(module, "other"), nullptr);
  EXPECT_EQ(kernel_attributes(module_kernel(load_module(contents("zstd.fatbin").data()), "k")).registers, 12);
}

TEST(Kernels, OfAModuleOfTextAreNotKnown) {
  const std::uint64_t before = counted(Estimate::kernel);
  const Handle module = load_module("// not compiled");
  for (const char* name : {"any", "other", "any"}) {
    const Handle kernel = module_kernel(module, name);
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel_attributes(kernel).registers, 32);
  }
  EXPECT_EQ(counted(Estimate::kernel), before + 2);
}

TEST(Kernels, TheVersionOfPtxIsThatOfTheVirtualArchitecture) {
  const FunctionAttributes kernel = attributes_in(contents("virtual_80.fatbin"));
  EXPECT_EQ(kernel.ptx_version, 80);
  EXPECT_EQ(kernel.binary_version, 90);
}

TEST(Kernels, DynamicSharedMemoryHasToBeAllowed) {
  const std::string bytes = contents("zstd.fatbin");
  const Wrapper wrapper(bytes);
  static const char kHost = 0;
  register_kernel(register_fat_binary(&wrapper), &kHost, "k");
  EXPECT_EQ(blocks_per_multiprocessor(&kHost, 256, 7000), 8);
  EXPECT_EQ(blocks_per_multiprocessor(&kHost, 256, 100000), 0);
  EXPECT_FALSE(allow_dynamic_shared(&kHost, 232448));  // of which the kernel has 300 already
  EXPECT_TRUE(allow_dynamic_shared(&kHost, 100000));
  EXPECT_EQ(blocks_per_multiprocessor(&kHost, 256, 100000), 2);
  EXPECT_EQ(kernel_attributes(&kHost).max_dynamic_shared_bytes, 100000);
  EXPECT_EQ(available_dynamic_shared(&kHost, 1, 256), 100000U);
  EXPECT_FALSE(available_dynamic_shared(&kHost, 33, 32));
}

TEST(Kernels, UnknownCodeCountsAsSmallKernel) {
  const char host = 0;
  EXPECT_EQ(kernel_attributes(&host).registers, 32);
  EXPECT_EQ(kernel_attributes(&host).binary_version, 90);
}

TEST(FatBinary, TheCodeThatTheDriverWouldChoose) {
  const std::string bytes = contents("architectures.fatbin");  // sm_80, PTX 8.0, sm_90a
  const Wrapper wrapper(bytes);
  EXPECT_EQ(choose_code(&wrapper, 8, 6)->architecture, 80);
  EXPECT_FALSE(choose_code(&wrapper, 8, 6)->cubin.empty());
  EXPECT_EQ(choose_code(&wrapper, 9, 0)->architecture, 90);
  EXPECT_FALSE(choose_code(&wrapper, 9, 0)->cubin.empty());
  EXPECT_EQ(choose_code(&wrapper, 10, 0)->architecture, 80);
  EXPECT_TRUE(choose_code(&wrapper, 10, 0)->cubin.empty());
  EXPECT_FALSE(choose_code(&wrapper, 7, 5));
}

TEST(FatBinary, IsNotReadPastItsSize) {
  std::string bytes = contents("zstd.fatbin");
  for (std::uint64_t length = 0; length + 16 < bytes.size(); ++length) {
    bytes.replace(8, sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
    const std::string part = bytes.substr(0, 16 + length);  // a sanitizer detects a read past it
    const Wrapper wrapper(part);
    const auto code = choose_code(&wrapper, 9, 0);
    EXPECT_EQ(code.has_value(), length >= 64 + 1160) << length;  // the entry of the cubin
  }
}

// Blocks and their content according to liblz4: literals, a match that reads its own output, literals to the end.
TEST(Lz4, BlocksAreDecompressed) {
  const std::string block("\x51hello\x02\x00\xc0wonderworld!", 21);
  EXPECT_EQ(decompress_lz4(block, 22), "hellolololwonderworld!");
  EXPECT_FALSE(decompress_lz4(block, 21));
  EXPECT_FALSE(decompress_lz4(block, 23));
}

TEST(Lz4, LengthsContinueInMoreBytes) {
  const std::string block("\x1f-\x01\x00\xff\x05\xc0wonderworld!", 19);
  std::string expected(280, '-');
  expected += "wonderworld!";
  EXPECT_EQ(decompress_lz4(block, 292), expected);
}

TEST(Lz4, DistancesBeforeTheStartAreRefused) {
  EXPECT_FALSE(decompress_lz4(std::string("\x10-\x02\x00\x10+", 6), 6));
  EXPECT_FALSE(decompress_lz4(std::string("\x10-\x00\x00\x10+", 6), 6));
}

TEST(Lz4, IsReadNoFurtherThanItsEnd) {
  const std::string block = contents("lz4.fatbin").substr(16 + 72);
  for (std::size_t length = 0; length < block.size(); ++length) {
    const std::string part(block, 0, length);  // a sanitizer detects a read past it
    EXPECT_FALSE(decompress_lz4(part, 1 << 20)) << length;
  }
}

TEST(Cubin, OfCuda12) {
  const Cubin cubin = read_cubin(contents("cuda12.cubin"));
  EXPECT_EQ(cubin.binary_version, 70);
  EXPECT_EQ(cubin.ptx_version, 70);
  EXPECT_EQ(cubin.constant_bytes, 400U);
  const KernelNeeds& kernel = cubin.kernels.at("k");
  EXPECT_EQ(kernel.registers, 10);
  EXPECT_EQ(kernel.shared_bytes, 300U);
  EXPECT_EQ(kernel.local_bytes, 200U);
  EXPECT_EQ(kernel.launch_bound, 96);
  EXPECT_EQ(kernel.barriers, 1);
}

TEST(Cubin, IsNotReadPastItsEnd) {
  const std::string file = contents("cuda12.cubin");
  for (std::size_t length = 0; length < file.size(); length += 7)
    (void)read_cubin(std::string(file, 0, length));  // a sanitizer detects a read past it
}

struct Occupancy {
  KernelNeeds kernel;
  int blocks[8];
};

TEST(Occupancy, OfKernelsOfPyTorch) {
  constexpr int kThreads[] = {32, 96, 128, 256, 256, 512, 768, 1024};
  constexpr std::size_t kDynamic[] = {0, 0, 1, 0, 7000, 0, 16384, 0};
  const Occupancy measured[] = {
      {{.registers = 255}, {8, 2, 2, 1, 1, 0, 0, 0}},
      {{.registers = 72, .barriers = 7}, {9, 9, 7, 3, 3, 1, 1, 0}},
      {{.registers = 28, .shared_bytes = 8192}, {25, 21, 16, 8, 8, 4, 2, 2}},
      {{.registers = 40, .shared_bytes = 8192}, {25, 16, 12, 6, 6, 3, 2, 1}},
      {{.registers = 168, .shared_bytes = 23552}, {9, 4, 3, 1, 1, 0, 0, 0}},
      {{.registers = 56, .shared_bytes = 31232}, {7, 7, 7, 4, 4, 2, 1, 1}},
      {{.registers = 128, .shared_bytes = 12032}, {16, 5, 4, 2, 2, 1, 0, 0}},
      {{.registers = 64, .shared_bytes = 21664}, {10, 10, 8, 4, 4, 2, 1, 1}},
  };
  for (const Occupancy& each : measured)
    for (int index = 0; index < 8; ++index)
      EXPECT_EQ(blocks_per_multiprocessor(profile(), each.kernel, kThreads[index], kDynamic[index]), each.blocks[index])
          << each.kernel.registers << " registers, " << kThreads[index] << " threads";
}

}  // namespace
}  // namespace tidemark::phantom
