// Fuzz target of the readers of ELF files: function names by address, and the symbols that a PyTorch library needs, for
// which stand-ins are written. For any bytes, reading terminates, and errors name the file or the reason.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/require.h"
#include "phantom/standins/standins.h"
#include "store/symbols.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

constexpr std::uint64_t kAddresses = 64;  // the first ones, and as many spread over the file

/// A folder like PyTorch's with one library, in a memory file system if there is one.
class Folder {
 public:
  Folder() {
    const auto place = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
    path_ = place / ("tidemark-elf-fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_ / "lib");
    std::filesystem::create_directories(path_ / "standins");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string path(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string library = folder.path("lib/libtorch_cuda.so");
  std::ofstream(library, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto symbols = ElfSymbols::open(library, "");
  if (symbols) {
    for (std::uint64_t n = 0; n < kAddresses; ++n) {
      (void)(*symbols)->function_at(n);
      (void)(*symbols)->function_at(size * n / kAddresses);
      (void)(*symbols)->function_at(~n);
    }
  } else {
    require(!symbols.error().message.empty(), "an error says why");
  }
  const auto written = write_standins(folder.path("standins"), folder.path(""), {}, library);
  require(written.ok() || !written.error().message.empty(), "an error says why");
  return 0;
}
