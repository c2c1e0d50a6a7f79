// Parses the options of an endpoint.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/scoped_fd.h"
#include "http/endpoint.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;
constexpr std::size_t kMinTokenBytes = 16;

bool is_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

}  // namespace

Result<EndpointOptions> parse_endpoint(const std::string& text) {
  const Error wrong{
      fmt::format("'{}' is no address to listen at (expected ADDRESS:PORT, such as 127.0.0.1:9400)", text)};
  const std::size_t colon = text.rfind(':');
  EndpointOptions options;
  options.address = colon == std::string::npos ? "" : text.substr(0, colon);
  if (options.address.starts_with('[') && options.address.ends_with(']')) {
    options.address = options.address.substr(1, options.address.size() - 2);
  } else if (options.address.find(':') != std::string::npos) {
    return wrong;  // which of the colons is before the port?
  }
  if (options.address.empty() || options.address == "localhost") options.address = "127.0.0.1";
  if (!is_address(options.address)) return wrong;

  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const char* const end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, options.port);
  if (error != std::errc() || rest != end) return wrong;
  return options;
}

bool is_loopback(const EndpointOptions& options) {
  in_addr four{};
  if (::inet_pton(AF_INET, options.address.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == IN_LOOPBACKNET;
  in6_addr six{};
  return ::inet_pton(AF_INET6, options.address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Result<std::string> read_token_file(const std::string& path) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0) {
    return Error{fmt::format("{}: cannot be read: {}", path, std::strerror(errno))};
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{fmt::format("{}: others may read this token (run: chmod 600 {})", path, path)};
  }
  std::array<char, kMaxTokenBytes + 1> bytes{};
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0) return Error{fmt::format("{}: cannot be read: {}", path, std::strerror(errno))};
  std::string_view token(bytes.data(), static_cast<std::size_t>(got));
  token = token.substr(0, token.find_first_of("\r\n"));
  const auto is_visible = [](unsigned char letter) { return letter > ' ' && letter < 0x7f; };
  if (token.size() < kMinTokenBytes || token.size() >= kMaxTokenBytes ||
      !std::all_of(token.begin(), token.end(), is_visible)) {
    return Error{
        fmt::format("{}: the first line is no token (expected {} to {} letters and digits, such as those of "
                    "`openssl rand -hex 32`)",
                    path, kMinTokenBytes, kMaxTokenBytes - 1)};
  }
  return std::string(token);
}

}  // namespace tidemark
