#include "collect/recorder/kept_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tidemark {

Result<std::shared_ptr<KeptFolder>> KeptFolder::create(const std::string& output) {
  constexpr int kMostNames = 1000;
  const std::string first = output + ".kept";
  int error = EEXIST;
  for (int number = 1; error == EEXIST && number < kMostNames; ++number) {
    std::string path = number == 1 ? first : fmt::format("{}.{}", first, number);
    if (::mkdir(path.c_str(), S_IRWXU) == 0) return std::shared_ptr<KeptFolder>(new KeptFolder(std::move(path)));
    error = errno;
  }
  return Error{fmt::format("{}: cannot be created: {}. Choose another place with -o.", first, std::strerror(error))};
}

KeptFolder::~KeptFolder() {
  ::rmdir(path_.c_str());
}

Result<std::unique_ptr<Sink>> KeptFolder::open_segment(pid_t pid, std::string& path) {
  path = fmt::format("{}/{:06}.pid{}.tide", path_, ++opened_, pid);
  return open_file_sink(path, false);
}

}  // namespace tidemark
