// The head of an HTTP request: the parts of RFC 9112 needed to serve a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark {

inline constexpr std::size_t kMaxRequestBytes = 8192;  ///< longer heads are refused

enum class RequestState : std::uint8_t {
  incomplete,  ///< more data is needed
  complete,
  invalid,      ///< not HTTP, or ambiguous
  too_long,     ///< more than kMaxRequestBytes
  has_content,  ///< it has a body, which no page accepts
};

struct HttpRequest {
  RequestState state = RequestState::incomplete;
  // Set if the request is complete:
  std::string method;
  std::string path;                          ///< without "?query"
  std::string host;                          ///< without the port: "localhost", "[::1]"; empty: none given
  std::optional<std::string> authorization;  ///< "Bearer TOKEN"
};

/// Parses the data received so far. Untrusted input.
[[nodiscard]] HttpRequest parse_request(std::string_view received);

}  // namespace tidemark
