#include "sweep/end_of_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tidemark {

std::string end_of_file(const std::string& path) {
  constexpr std::streamoff kMaxTail = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - kMaxTail));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace tidemark
