// Fuzz target of received HTTP requests: for any bytes, a request is complete when its empty line has arrived, does not
// change with later bytes, and is never longer than allowed.
#include <cstdint>
#include <string_view>

#include "fuzz/require.h"
#include "http/request.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view received(reinterpret_cast<const char*>(data), size);
  const HttpRequest request = parse_request(received);
  const std::size_t end = received.find("\r\n\r\n");
  const bool has_end = end != std::string_view::npos && end + 4 <= kMaxRequestBytes;
  require((request.state == RequestState::incomplete) == (!has_end && size < kMaxRequestBytes),
          "more is waited for until the empty line has come, or too much");
  if (!has_end) return 0;
  require(request.state != RequestState::too_long, "what ends in time is not too long");
  const HttpRequest again = parse_request(received.substr(0, end + 4));
  require(again.state == request.state && again.path == request.path && again.host == request.host,
          "what comes after a request does not change it");
  if (request.state != RequestState::complete) return 0;
  require(request.path.starts_with('/'), "a path begins with a slash");
  require(request.path.find_first_of("? \r\n") == std::string::npos, "a path is one");
  require(request.host.find_first_of(" \r\n") == std::string::npos, "a host is one");
  return 0;
}
