// Sends a POST request over HTTP or HTTPS, and waits for the answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidemark {

struct PostRequest {
  std::string url;  ///< http or https
  std::string_view body;
  std::vector<std::string> headers = {};       ///< "Content-Type: application/json"
  std::chrono::milliseconds patience{10'000};  ///< for the whole request, up to the end of the answer
};

struct PostAnswer {
  int status = 0;                                   ///< 200
  std::optional<std::chrono::seconds> retry_after;  ///< if the server sent it; at most an hour
  std::string body;                                 ///< at most its first 4 KiB; the rest is not awaited
};

/// An error if there was no answer: no libcurl, no connection, a timeout, more than 64 KiB of headers. `stop`: gives up
/// soon once it is true. Follows no redirection; uses the proxies of the environment (https_proxy). Any thread; blocks.
[[nodiscard]] Result<PostAnswer> post(const PostRequest& request, const std::atomic<bool>& stop);

/// An error, which describes the expected form, unless the text is a URL supported by post().
[[nodiscard]] Result<void> check_url(const std::string& url);

/// The URL without possible secrets, for messages: "https://user:password@host/path?key" → "https://host/path".
[[nodiscard]] std::string shown_url(const std::string& url);

}  // namespace tidemark
