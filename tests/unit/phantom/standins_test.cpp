// Generated libraries, loaded by the dynamic loader and read by the linker.
#include "phantom/standins/standins.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "phantom/standins/library_writer.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

// The targets of stubs are in libtidemark_phantom.so; here it is a library of that name with the two functions.
constexpr const char* kPhantom = R"(
  static int handles;
  void* asked;
  int tidemark_phantom_unanswered(const char* name) { asked = (void*)name; return 77; }
  int tidemark_phantom_create_handle(void** handle) { *handle = (void*)(long)++handles; return 0; }
)";

class StandinsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("phantom.c", kPhantom);
    ASSERT_EQ(run("cc -shared -fPIC -o libtidemark_phantom.so -Wl,-soname,libtidemark_phantom.so phantom.c"), 0);
    folder_.write("libcudart.so.13", write_standin_library({"libcudart.so.13",
                                                            "libcudart.so.13",
                                                            {{"cudaSucceeds", StandinFunction::succeed},
                                                             {"cudaCreates", StandinFunction::create_handle},
                                                             {"cudaFails", StandinFunction::fail}}}));
    folder_.write("libnccl.so.2", write_standin_library({"libnccl.so.2", "", {{"ncclX", StandinFunction::succeed}}}));
  }
  [[nodiscard]] int run(const std::string& command) const {
    return std::system(("cd " + folder_.path() + " && " + command).c_str());
  }
  void* open(const char* name) { return dlopen(folder_.at(name).c_str(), RTLD_NOW | RTLD_GLOBAL); }

  testing::TemporaryFolder folder_;
};

TEST_F(StandinsTest, LoadAndBehaveAsWritten) {
  void* const phantom = open("libtidemark_phantom.so");
  ASSERT_NE(phantom, nullptr) << dlerror();
  void* const library = open("libcudart.so.13");
  ASSERT_NE(library, nullptr) << dlerror();

  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "cudaSucceeds"))(), 0);

  const auto create = reinterpret_cast<int (*)(void**)>(dlsym(library, "cudaCreates"));
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_EQ(create(&first), 0);
  EXPECT_EQ(create(&second), 0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);

  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "cudaFails"))(), 77);
  EXPECT_STREQ(*static_cast<const char**>(dlsym(phantom, "asked")), "cudaFails");

  EXPECT_NE(dlvsym(library, "cudaSucceeds", "libcudart.so.13"), nullptr);
  EXPECT_EQ(dlvsym(library, "cudaSucceeds", "libcudart.so.12"), nullptr);
  EXPECT_EQ(dlsym(library, "cudaOther"), nullptr);

  void* const plain = open("libnccl.so.2");
  ASSERT_NE(plain, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(plain, "ncclX"))(), 0);
}

// The dynamic linker looks up most names of later libraries in each stand-in.
TEST_F(StandinsTest, NamesAreInAsManyBucketsAsThereAreSymbols) {
  StandinLibrary many{"libcublas.so.13", "", {}};
  for (int number = 0; number < 1000; ++number) {
    many.functions.push_back({"cublas" + std::to_string(number), StandinFunction::succeed});
  }
  folder_.write("libcublas.so.13", write_standin_library(many));
  // The two targets of jumps, the first symbol, which is none, and the functions.
  EXPECT_EQ(run("readelf --histogram libcublas.so.13 | grep -q 'total of 1003 buckets'"), 0);
  ASSERT_NE(open("libtidemark_phantom.so"), nullptr);
  void* const library = open("libcublas.so.13");
  ASSERT_NE(library, nullptr) << dlerror();
  for (const auto& function : many.functions) EXPECT_NE(dlsym(library, function.name.c_str()), nullptr);
}

TEST_F(StandinsTest, LinkWithTheirVersions) {
  folder_.write("main.c",
                "int cudaSucceeds(void); int ncclX(void); int main(void) { return cudaSucceeds() + ncclX(); }");
  ASSERT_EQ(run("cc -o program main.c ./libcudart.so.13 ./libnccl.so.2 -Wl,-rpath,. -Wl,-rpath-link,."), 0);
  EXPECT_EQ(run("LD_LIBRARY_PATH=. ./program"), 0);
  EXPECT_EQ(run("readelf -V program | grep -q 'Name: libcudart.so.13'"), 0);
  EXPECT_EQ(run("nm -D libcudart.so.13 | grep -q 'T cudaFails@@libcudart.so.13'"), 0);
  EXPECT_EQ(run("nm -D libnccl.so.2 | grep -q 'T ncclX$'"), 0);
}

// NVTX had versions until CUDA 12 and NVSHMEM has one that is not its name: the linker's version counts.
TEST_F(StandinsTest, HaveTheVersionsThatPyTorchWasLinkedWith) {
  folder_.write("torch.c",
                "int nvtxMark(void); int nvshmem_init(void); int f(void) { return nvtxMark() + nvshmem_init(); }");
  folder_.write(
      "libnvToolsExt.so.1",
      write_standin_library({"libnvToolsExt.so.1", "libnvToolsExt.so.1", {{"nvtxMark", StandinFunction::succeed}}}));
  folder_.write(
      "libnvshmem_host.so.3",
      write_standin_library({"libnvshmem_host.so.3", "NVSHMEM", {{"nvshmem_init", StandinFunction::succeed}}}));
  ASSERT_EQ(
      run("mkdir -p torch/lib standins && cc -shared -fPIC -o torch/lib/libtorch_cuda.so torch.c ./libnvToolsExt.so.1 "
          "./libnvshmem_host.so.3 -Wl,-rpath-link,."),
      0);
  const auto written =
      write_standins(folder_.at("standins"), folder_.at("torch"), {}, folder_.at("libtidemark_phantom.so"));
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(run("nm -D standins/libnvToolsExt.so.1 | grep -q 'T nvtxMark@@libnvToolsExt.so.1'"), 0);
  EXPECT_EQ(run("nm -D standins/libnvshmem_host.so.3 | grep -q 'T nvshmem_init@@NVSHMEM'"), 0);
}

// A file may claim four billion needed versions, with the next at the place of this one.
TEST_F(StandinsTest, CyclicVersionsEnd) {
  folder_.write("torch.c", "int cudaSucceeds(void); int f(void) { return cudaSucceeds(); }");
  ASSERT_EQ(run("mkdir -p torch/lib standins && cc -shared -fPIC -o torch/lib/libtorch_cuda.so torch.c "
                "./libcudart.so.13 -Wl,-rpath-link,."),
            0);
  const std::string path = folder_.at("torch/lib/libtorch_cuda.so");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto read = [&](std::size_t at, auto& what) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(&what), sizeof(what));
  };
  const auto write = [&](std::size_t at, const auto& what) {
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(&what), sizeof(what));
  };
  Elf64_Ehdr elf{};
  read(0, elf);
  bool found = false;
  for (std::size_t number = 0; number < elf.e_shnum; ++number) {
    const std::size_t at = elf.e_shoff + number * elf.e_shentsize;
    Elf64_Shdr section{};
    read(at, section);
    if (section.sh_type != SHT_GNU_verneed) continue;
    found = true;
    section.sh_info = 0xffffffff;
    write(at, section);
    Elf64_Verneed need{};
    read(section.sh_offset, need);
    need.vn_cnt = 0xffff;
    need.vn_next = 0;
    write(section.sh_offset, need);
    Elf64_Vernaux version{};
    read(section.sh_offset + need.vn_aux, version);
    version.vna_next = 0;
    write(section.sh_offset + need.vn_aux, version);
  }
  ASSERT_TRUE(found);
  ASSERT_TRUE(file.flush());
  const auto written =
      write_standins(folder_.at("standins"), folder_.at("torch"), {}, folder_.at("libtidemark_phantom.so"));
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(run("nm -D standins/libcudart.so.13 | grep -q 'T cudaSucceeds@@libcudart.so.13'"), 0);
}

}  // namespace
}  // namespace tidemark
