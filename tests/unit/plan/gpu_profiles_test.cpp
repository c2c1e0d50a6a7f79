#include "plan/gpu_profiles.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "temporary_folder.h"

namespace tidemark {
namespace {

TEST(GpuProfiles, TheKnownOnesAreComplete) {
  EXPECT_GE(gpu_profiles().size(), 20U);
  for (const GpuProfile& gpu : gpu_profiles()) {
    SCOPED_TRACE(gpu.name);
    // A context, workspaces of libraries and ECC take some of the nominal memory.
    EXPECT_GE(gpu.memory_bytes, 10ULL << 30);
    EXPECT_LE(gpu.memory_bytes, 192ULL << 30);
    EXPECT_EQ(gpu.l2_cache_bytes % 4096, 0U);
    EXPECT_GE(gpu.l2_cache_bytes, 2ULL << 20);
    EXPECT_GE(gpu.memory_bus_bits, 192);
    EXPECT_EQ(gpu.measured, gpu.name == "H200" || gpu.name == "H100-80GB");
    EXPECT_EQ(find_gpu_profile(gpu.full_name)->name, gpu.name);
  }
}

// torch.cuda.get_device_properties() and cudaDeviceProp of an H200.
TEST(GpuProfiles, H200) {
  const GpuProfile gpu = *find_gpu_profile("h200");
  EXPECT_EQ(gpu.full_name, "NVIDIA H200");
  EXPECT_EQ(gpu.memory_bytes, 150'109'880'320U);
  EXPECT_EQ(gpu.context_bytes, 648'871'936U);
  EXPECT_EQ(gpu.major * 10 + gpu.minor, 90);
  EXPECT_EQ(gpu.multiprocessors, 132);
  EXPECT_EQ(gpu.l2_cache_bytes, 62'914'560U);
  EXPECT_EQ(gpu.limits.shared_bytes, 233'472);
  EXPECT_EQ(gpu.limits.shared_bytes_per_block, 232'448);
  EXPECT_EQ(gpu.limits.threads, 2048);
  EXPECT_EQ(gpu.limits.blocks, 32);
}

TEST(GpuProfiles, NamesAsPeopleTypeThem) {
  const std::pair<const char*, const char*> names[] = {{"3090", "RTX-3090"},       {"RTX3090", "RTX-3090"},
                                                       {"rtx 4090", "RTX-4090"},   {"h100-80gb", "H100-80GB"},
                                                       {"H100 PCIe", "H100-PCIe"}, {"l4", "L4"},
                                                       {"2080ti", "RTX-2080-Ti"},  {"a100_40gb", "A100-40GB"}};
  for (const auto& [typed, name] : names) {
    const auto gpu = find_gpu_profile(typed);
    ASSERT_TRUE(gpu) << typed;
    EXPECT_EQ(gpu->name, name);
  }
  EXPECT_EQ(find_gpu_profile("a100").error().message,
            "--gpu a100: several GPUs have this name; choose A100-40GB or A100-80GB");
  EXPECT_EQ(find_gpu_profile("24GB").error().message,
            "--gpu 24GB: a size, not a GPU; name a GPU and set its memory, such as --gpu RTX-3090 --memory 24GB");
  EXPECT_EQ(
      find_gpu_profile("3090 Ti").error().message,
      "--gpu 3090 Ti: unknown GPU; similar: RTX-3090; --memory sets another size, such as --gpu RTX-3090 --memory "
      "24GiB");
  EXPECT_TRUE(find_gpu_profile("gtx9").error().message.starts_with("--gpu gtx9: unknown GPU; known: T4, V100-16GB, "));
}

// cuda::arch_traits of CCCL 3.1: {capability, shared memory in KiB, threads, blocks}. From 8.0 on, a block gets 1 KiB
// less.
TEST(GpuProfiles, LimitsByComputeCapability) {
  constexpr int kTraits[][4] = {{70, 96, 2048, 32},   {75, 64, 1024, 16},   {80, 164, 2048, 32},  {86, 100, 1536, 16},
                                {87, 164, 1536, 16},  {88, 100, 1536, 16},  {89, 100, 1536, 24},  {90, 228, 2048, 32},
                                {100, 228, 2048, 32}, {103, 228, 2048, 32}, {110, 228, 1536, 24}, {120, 100, 1536, 24},
                                {121, 100, 1536, 24}};
  for (const auto& [capability, shared, threads, blocks] : kTraits) {
    SCOPED_TRACE(capability);
    const auto limits = limits_of(capability / 10, capability % 10);
    ASSERT_TRUE(limits);
    EXPECT_EQ(limits->shared_bytes, shared * 1024);
    EXPECT_EQ(limits->shared_bytes_per_block, (shared - (capability >= 80 ? 1 : 0)) * 1024);
    EXPECT_EQ(limits->threads, threads);
    EXPECT_EQ(limits->blocks, blocks);
  }
  EXPECT_FALSE(limits_of(6, 0));
}

TEST(GpuProfiles, FromAFile) {
  const testing::TemporaryFolder folder;
  const std::string path =
      folder.write("my card.gpu",
                   "# bought in 2031\n memory = 47.5 GiB \r\ncompute_capability=8.9\nmultiprocessors = 142  # half\n");
  const auto gpu = find_gpu_profile(path);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->name, "my card");
  EXPECT_EQ(gpu->full_name, "my card");
  EXPECT_EQ(gpu->memory_bytes, 51'002'736'640U);
  EXPECT_FALSE(gpu->context_measured);
  EXPECT_EQ(gpu->multiprocessors, 142);
  EXPECT_EQ(gpu->limits.blocks, 24);
  EXPECT_TRUE(gpu->measured);
  for (const std::string& other : {path + "s", folder.path() + "/", std::string("/dev/zero")}) {
    const auto unreadable = find_gpu_profile(other);
    ASSERT_FALSE(unreadable);
    EXPECT_EQ(unreadable.error().message,
              other + ": this GPU profile cannot be read; known GPUs have names without a dot");
  }
}

TEST(GpuProfiles, TextThatIsPrintedParsesToTheSame) {
  for (const GpuProfile& gpu : gpu_profiles()) {
    const std::string text = gpu_profile_text(gpu);
    const auto parsed = parse_gpu_profiles(text, "printed");
    ASSERT_TRUE(parsed) << parsed.error().message;
    ASSERT_EQ(parsed->size(), 1U);
    EXPECT_EQ(parsed->front().context_bytes, gpu.context_bytes);
    EXPECT_EQ(gpu_profile_text(parsed->front()), text);
  }
}

TEST(GpuProfiles, ErrorsNameFileLineAndWhatToWrite) {
  const std::string whole = "memory = 24GiB\ncompute_capability = 8.9\nmultiprocessors = 128\n";
  const std::string smallest =
      "; it needs at least `memory = 24GiB`, `compute_capability = 8.9` and `multiprocessors = 128`";
  const std::pair<std::string, std::string> cases[] = {
      {"", "a.gpu: no profile" + smallest},
      {"\n\nmemory 24GiB", "a.gpu:3: 'memory 24GiB' is no line `key = value`, such as `memory = 24GiB`"},
      {"memory = 24XB", "a.gpu:1: memory = 24XB: write it as in `memory = 24GiB`"},
      {"memory = -1", "a.gpu:1: memory = -1: write it as in `memory = 24GiB`"},
      {"memory = nanGiB", "a.gpu:1: memory = nanGiB: write it as in `memory = 24GiB`"},
      {"memory = 99999999999999999999", "a.gpu:1: memory = 99999999999999999999: write it as in `memory = 24GiB`"},
      {"compute_capability = 9", "a.gpu:1: compute_capability = 9: write it as in `compute_capability = 9.0`"},
      {"memory = 24GiB\nmultiprocessors = 128", "a.gpu: a has no compute_capability" + smallest},
      {whole + "sms = 5",
       "a.gpu:4: no field of a GPU is called 'sms'; the fields are name, memory, context, compute_capability, "
       "multiprocessors, l2_cache, memory_bus_bits, shared_memory, shared_memory_per_block, threads, blocks, measured"},
      {"memory = 24GiB\ncompute_capability = 13.0\nmultiprocessors = 128",
       "a.gpu: the limits of compute capability 13.0 are not known; add shared_memory, shared_memory_per_block, "
       "threads "
       "and blocks of a multiprocessor"},
      {"[A]\n" + whole + "[B]\nmemory = 8GiB\n", "a.gpu: B has no compute_capability" + smallest},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_gpu_profiles(text, "a.gpu");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, message);
  }
  const std::string limits = "shared_memory = 256KiB\nshared_memory_per_block = 255KiB\nthreads = 2048\nblocks = 32\n";
  EXPECT_TRUE(parse_gpu_profiles("memory = 24GiB\ncompute_capability = 13.0\nmultiprocessors = 9\n" + limits, "a.gpu"));
}

}  // namespace
}  // namespace tidemark
