#include "books.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace fakes {
namespace {

std::string library_of(const void* code) {
  Dl_info info{};
  if (::dladdr(code, &info) == 0) return {};
  const std::string path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

thread_local Call current_call;

void log_line(const std::string& line) {
  const char* path = std::getenv("FAKES_CUDA_LOG");
  const int file = path == nullptr ? -1 : ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string whole = line + "\n";
  if (::write(file, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) std::abort();
  ::close(file);
}

void Books::change(const std::string& account, std::int64_t bytes) {
  now_[account] += static_cast<std::uint64_t>(bytes);
  nlohmann::json line;
  line["pid"] = ::getpid();
  line["tid"] = ::syscall(SYS_gettid);
  line["call"] = current_call.number;
  line["function"] = current_call.function;
  line["caller"] = library_of(current_call.caller);
  line["account"] = account;
  line["change"] = bytes;
  log_line(line.dump());
}

std::uint64_t Books::now(const std::string& account) const {
  const auto found = now_.find(account);
  return found == now_.end() ? 0 : found->second;
}

}  // namespace fakes
