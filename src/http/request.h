// The head of an HTTP request: RFC 9112, as far as reading a page needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark {

inline constexpr std::size_t kMaxRequestBytes = 8192;  ///< longer heads are refused

enum class RequestState : std::uint8_t {
  incomplete,  ///< more has to come
  complete,
  invalid,      ///< not HTTP, or ambiguous
  too_long,     ///< more than kMaxRequestBytes
  has_content,  ///< a body follows, which no page takes
};

struct HttpRequest {
  RequestState state = RequestState::incomplete;
  // Of a complete one:
  std::string method;
  std::string path;                          ///< without "?query"
  std::string host;                          ///< without the port: "localhost", "[::1]"; empty: not said
  std::optional<std::string> authorization;  ///< "Bearer TOKEN"
};

/// Of what has been received of a request so far. Untrusted input.
[[nodiscard]] HttpRequest parse_request(std::string_view received);

}  // namespace tidemark
