#include "collect/machine/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/scoped_fd.h"

namespace tidemark {

// Plain system calls: these files are read ten times a second, and a stream allocates and looks up locales.
std::optional<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while (text.size() < kMaxFileBytes && (got = ::read(fd.get(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  if (got < 0) return std::nullopt;
  return text;
}

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::uint64_t> leading_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto text = read_file(path);
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<std::uint64_t> number_after(const std::string& text, const std::string& key) {
  std::size_t at = text.rfind(key, 0) == 0 ? 0 : text.find("\n" + key);
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_not_of(" \t\n", at);
  at = text.find_first_not_of(" \t", at + key.size());
  return at == std::string::npos ? std::nullopt : leading_number(text.substr(at, 24));
}

}  // namespace tidemark
