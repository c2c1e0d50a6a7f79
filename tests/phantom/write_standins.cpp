// Writes the stand-ins for an installed PyTorch: write_standins FOLDER TORCH_FOLDER PHANTOM
// FOLDER gets the libraries, and the value for LD_PRELOAD goes to stdout.
#include <cstdio>

#include "phantom/standins/standins.h"

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("write_standins FOLDER TORCH_FOLDER PHANTOM\n", stderr);
    return 2;
  }
  const auto standins = tidemark::write_standins(arguments[1], arguments[2], {}, arguments[3]);
  if (!standins) {
    std::fprintf(stderr, "%s\n", standins.error().message.c_str());
    return 2;
  }
  for (const std::string& path : *standins) std::printf("%s:", path.c_str());
  return 0;
}
