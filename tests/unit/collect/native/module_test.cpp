#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "collect/process/native/unwinder.h"

namespace tidemark::process {
namespace {

std::string hex(const void* data, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(data)[i]);
    text += digits;
  }
  return text;
}

/// The build-id that libelf finds in the sections of a file.
std::string build_id_of_file(const char* path) {
  elf_version(EV_CURRENT);
  const int fd = open(path, O_RDONLY);
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  std::string result;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_NOTE) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    GElf_Nhdr note;
    std::size_t name = 0, text = 0, at = 0;
    while ((at = gelf_getnote(data, at, &note, &name, &text)) > 0) {
      const auto* bytes = static_cast<const char*>(data->d_buf);
      if (note.n_type == NT_GNU_BUILD_ID && std::strcmp(bytes + name, "GNU") == 0)
        result = hex(bytes + text, note.n_descsz);
    }
  }
  elf_end(elf);
  close(fd);
  return result;
}

std::string real_path(const char* path) {
  char buffer[PATH_MAX];
  return realpath(path, buffer) != nullptr ? buffer : "";
}

void expect_module_of(const void* address, const std::string& path) {
  NativeModule module;
  ASSERT_TRUE(native_module_at(reinterpret_cast<std::uintptr_t>(address), &module));
  Dl_info info;
  link_map* map = nullptr;
  ASSERT_NE(dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP), 0);
  EXPECT_EQ(module.load_address, map->l_addr);
  EXPECT_EQ(module.start, reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  EXPECT_GT(module.end, reinterpret_cast<std::uintptr_t>(address));
  EXPECT_EQ(module.path[0], '/');
  EXPECT_EQ(real_path(module.path), path);
  EXPECT_EQ(hex(module.build_id, module.build_id_size), build_id_of_file(module.path));
}

TEST(NativeModule, OfTheExecutable) {
  static const int here = 0;
  expect_module_of(&here, real_path("/proc/self/exe"));
}

TEST(NativeModule, OfTheCLibrary) {
  const void* address = dlsym(RTLD_DEFAULT, "qsort");
  Dl_info info;
  ASSERT_NE(dladdr(address, &info), 0);
  expect_module_of(address, real_path(info.dli_fname));
  NativeModule module;
  ASSERT_TRUE(native_module_at(reinterpret_cast<std::uintptr_t>(address), &module));
  EXPECT_GT(module.build_id_size, 0);  // distributions build it with one
}

TEST(NativeModule, OfALibraryLoadedByARelativePath) {
  const std::string path = PLUGIN_SHALLOW;
  const auto slash = path.rfind('/');
  char before[PATH_MAX];
  ASSERT_NE(getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(chdir(path.substr(0, slash).c_str()), 0);
  void* handle = dlopen(("./" + path.substr(slash + 1)).c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  expect_module_of(dlsym(handle, "plugin_call"), real_path(path.c_str()));
  dlclose(handle);
  ASSERT_EQ(chdir(before), 0);
}

TEST(NativeModule, OfTheKernelsLibrary) {
  const auto vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) GTEST_SKIP() << "no vdso here";
  NativeModule module;
  ASSERT_TRUE(native_module_at(vdso, &module));
  EXPECT_STREQ(module.path, "[vdso]");
  EXPECT_EQ(module.start, vdso);
}

TEST(NativeModule, GeneratedCodeHasNone) {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  NativeModule module;
  EXPECT_FALSE(native_module_at(reinterpret_cast<std::uintptr_t>(memory), &module));
  EXPECT_FALSE(native_module_at(0, &module));
  munmap(memory, 4096);
}

}  // namespace
}  // namespace tidemark::process
