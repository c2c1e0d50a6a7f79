// The driver's own memory compared with the mappings of an H200's driver (580.159) in two programs of PyTorch 2.11,
// 2026-11-22: every call of cudaMalloc with its address, and the program's actions before it.
#include "phantom/gpu/driver_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace tidemark::phantom {
namespace {

constexpr std::ptrdiff_t kMebibyte = 1 << 20;
char* const kBase = reinterpret_cast<char*>(std::size_t{1} << 44);

struct Program {
  std::vector<std::ptrdiff_t> regions;  // where mmap() put them, in MiB from the first
  std::string events;                   // places in MiB from the first region
};

// Llama, bf16, checkpointing. Tensors that moved to the GPU left a hole above all others, which a region fills.
Program llama() {
  return {{0, -96, -512, -544, -1664, -1792, 224, -2304, -2688},
          "take 32 at -544; take 2 at -98; take 20 at -24; take 2 at -4; take 2 at -2; take 2 at -1664; "
          "take 2 at -1662; take 2 at -1660; take 20 at -1658; take 2 at -1638; take 2 at -1636; take 2 at -1634; "
          "take 32 at -1792; kernel 8832; kernel 1408 prints module; kernel 70528 prints module; pin; "
          "kernel 29824 prints module; cublas; take 32 at -448; product single 00 256 32 1; "
          "kernel 196608 prints module; product half 10 512 256 512; kernel 20480 module; take 2 at 236; "
          "kernel 28800 module; cudnn; kernel 4352 module; product half 10 1408 256 512; kernel 15232 module; "
          "product half 10 512 256 1408; take 2 at 246; take 16 at -416; product half 10 32000 256 512; "
          "take 32 at -400; kernel 1792 module; take 32 at -368; kernel 19072 prints module; take 32 at -336; "
          "kernel 24960; cublas; product half 01 512 32000 256; product half 00 512 256 32000; "
          "kernel 181376 prints module; take 2 at 248; kernel 3200 module; cudnn; take 2 at -238; "
          "product half 01 1408 512 256; take 2 at -236; product half 00 1408 256 512; product half 01 512 1408 256; "
          "product half 00 512 256 1408; kernel 12416 module; product half 01 512 512 256; "
          "product half 00 512 256 512; kernel 22016 module; take 2 at -234; take 2 at -232; take 2 at -230; "
          "take 2 at -228; take 2 at -226; take 2 at -224; take 32 at -222; kernel 2304; take 32 at -190; "
          "take 32 at -158; take 2 at -126; take 2 at -124; take 2 at -122; take 20 at -120; take 2 at -100; "
          "take 2 at -2688; take 2 at -2686; take 2 at -2684; take 20 at -2682; take 2 at -2662; take 2 at -2660; "
          "take 2 at -2658;"};
}

// GPT-2, fp32: a region for nearly every tensor, in two places.
Program gpt2() {
  return {{0,     -96,   -512,  -672,  544,   512,   480,   448,   416,   384,   -704,  352,   -736,  320,   -768,
           288,   -800,  256,   -832,  224,   192,   -864,  -1376, -160,  -192,  -224,  -288,  -320,  -352,  -384,
           -416,  -448,  -480,  -1408, -1440, -1472, -1504, -1536, -1568, -1600, -1632, -1664, -1696, -1728, -1760,
           -1792, -1824, -1856, -1888, -1920, -1952, -2080, -2208, -2464, -2624, -2688, -2848, -3008},
          "take 148 at -672; take 20 at -24; take 2 at -524; take 20 at 544; take 20 at 512; take 20 at 480; "
          "take 20 at 448; take 20 at 416; take 20 at 384; take 20 at -704; take 20 at 352; take 20 at -736; "
          "take 20 at 320; take 20 at -768; take 20 at 288; take 20 at -800; take 20 at 256; take 20 at -832; "
          "take 20 at 224; take 20 at 192; take 20 at -864; kernel 8832; kernel 1408 prints module; "
          "kernel 43520 module; cublas; take 32 at -192; take 2 at -868; kernel 79360 module; take 20 at -224; "
          "kernel 15360 module; take 20 at -288; kernel 3200 module; take 20 at -320; take 2 at -300; "
          "take 20 at -352; take 20 at -384; take 20 at -416; take 20 at -448; take 20 at -480; take 2 at -460; "
          "take 20 at -1408; take 20 at -1440; take 20 at -1472; take 20 at -1504; take 20 at -1536; "
          "take 20 at -1568; take 20 at -1600; take 2 at -1580; take 20 at -1632; take 20 at -1664; "
          "take 20 at -1696; take 20 at -1728; take 20 at -1760; take 2 at -1740; take 20 at -1792; "
          "take 20 at -1824; take 20 at -1856; take 20 at -1888; take 20 at -1920; take 20 at -1952; "
          "take 2 at -1932; take 100 at -2080; product single 10 50257 512 768; kernel 12160 module; "
          "take 100 at -2208; kernel 19072 prints module; take 100 at -2464; kernel 24960; take 148 at -2624; "
          "cublas; product single 01 768 50257 512; product single 00 768 512 50257; kernel 29184 module; "
          "product single 10 3072 512 768; product single 01 768 3072 512; kernel 102144 prints module; "
          "product single 10 768 512 3072; product single 01 3072 768 512; product single 10 768 512 768; "
          "product single 01 768 768 512; kernel 212224 prints module; product single 10 768 512 2304; "
          "product single 01 2304 768 512; kernel 2176; take 148 at -2848; take 148 at -3008;"};
}

/// A process with regions at their recorded places.
class Recorded {
 public:
  explicit Recorded(const std::vector<std::ptrdiff_t>& regions) {
    left() = regions;
    next() = 0;
  }
  static AddressSource source() { return {map, unmap}; }

 private:
  static std::vector<std::ptrdiff_t>& left() {
    static std::vector<std::ptrdiff_t> left;
    return left;
  }
  static std::size_t& next() {
    static std::size_t next = 0;
    return next;
  }
  static void* map(std::size_t bytes) {
    const bool region = (bytes + 4096) % (std::size_t{32} << 20) == 0;  // else a library
    if (!region || next() == left().size()) return nullptr;
    return kBase + left()[next()++] * kMebibyte;
  }
  static void unmap(void*, std::size_t) {}
};

void run(DriverMemory& driver, std::istream& event, const std::string& what) {
  std::string word;
  if (what == "cublas") driver.create_cublas_handle();
  if (what == "cudnn") driver.create_cudnn_handle();
  if (what == "pin") driver.pin_host_memory();
  if (what == "kernel") {
    LoadedKernel kernel;
    event >> kernel.code_bytes;
    while (event >> word) (word == "prints" ? kernel.prints : kernel.module_prints) = true;
    driver.load_kernel(kernel);
  }
  if (what == "product") {
    Product product;
    event >> word >> product.transposed >> product.rows >> product.columns >> product.depth;
    product.single = word == "single";
    driver.multiply(product);
  }
}

std::size_t& taken() {
  static std::size_t bytes = 0;
  return bytes;
}

/// Returns the device memory taken by the driver beside the context.
std::size_t compare(const Program& program) {
  const Recorded recorded(program.regions);
  AddressSpace addresses(Recorded::source());
  taken() = 0;
  DriverMemory driver(addresses, [](std::size_t bytes) { taken() += bytes; });
  std::istringstream events(program.events);
  int number = 0;
  for (std::string event; std::getline(events, event, ';'); ++number) {
    std::istringstream words(event);
    std::string what;
    words >> what;
    if (what != "take") {
      run(driver, words, what);
      continue;
    }
    std::size_t mebibytes = 0;
    std::ptrdiff_t place = 0;
    words >> mebibytes >> what >> place;
    const auto* const start =
        static_cast<char*>(addresses.reserve(mebibytes * std::size_t{kMebibyte}, std::size_t{2 * kMebibyte}));
    EXPECT_EQ((start - kBase) / kMebibyte, place) << "event " << number << ":" << event;
  }
  return taken();
}

// Beside the context, the driver mapped this much of the device: 8 MiB and 0x41000 bytes are the buffer of printf().
constexpr std::size_t kRestOfPrintfBuffer = 0x41000;

TEST(DriverMemory, MatchesAddressesOfALlama) {
  EXPECT_EQ(compare(llama()), 250 * std::size_t{kMebibyte} + kRestOfPrintfBuffer);
}

TEST(DriverMemory, MatchesAddressesOfGpt2) {
  EXPECT_EQ(compare(gpt2()), 234 * std::size_t{kMebibyte} + kRestOfPrintfBuffer);
}

}  // namespace
}  // namespace tidemark::phantom
