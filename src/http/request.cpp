#include "http/request.h"

#include <strings.h>

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

bool is_same_name(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

// Letters of a method or of a header's name: "tchar" of RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
           kOthers.find(letter) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char letter) { return letter > ' ' && letter != 0x7f; });
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::string_view without_port(std::string_view host) {
  const std::size_t after_address = host.starts_with('[') ? std::min(host.find(']'), host.size()) : 0;
  return host.substr(0, host.find(':', after_address));
}

// Removes and returns the text up to a separator, which is removed too; the whole text if there is none.
std::string_view take_until(std::string_view& text, std::string_view separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + separator.size(), text.size()));
  return part;
}

class HeadParser {
 public:
  HttpRequest parse(std::string_view head) {
    const std::string_view line = take_until(head, kLineEnd);
    request_.state = parse_first_line(line) ? RequestState::complete : RequestState::invalid;
    while (request_.state == RequestState::complete && !head.empty()) {
      request_.state = parse_header(take_until(head, kLineEnd));
    }
    if (request_.state == RequestState::complete && is_1_1_ && !has_host_) request_.state = RequestState::invalid;
    if (target_host_) request_.host = *target_host_;  // it takes precedence over the header
    return std::move(request_);
  }

 private:
  // METHOD SP TARGET SP VERSION
  bool parse_first_line(std::string_view line) {
    request_.method = take_until(line, " ");
    std::string_view target = take_until(line, " ");
    is_1_1_ = line == "HTTP/1.1";
    if ((!is_1_1_ && line != "HTTP/1.0") || !is_token(request_.method) || !is_visible(target)) return false;
    constexpr std::string_view kScheme = "http://";  // sent by clients that treat this as a proxy
    if (is_same_name(target.substr(0, kScheme.size()), kScheme)) {
      target.remove_prefix(kScheme.size());
      const std::string_view authority = target.substr(0, target.find_first_of("/?"));
      target_host_ = without_port(authority);
      target.remove_prefix(authority.size());
      if (!target.starts_with('/')) target = "/";
    }
    request_.path = target.substr(0, target.find('?'));
    return target.starts_with('/');
  }

  RequestState parse_header(std::string_view line) {
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_token(name)) return RequestState::invalid;
    const std::string_view value = without_blanks(line.substr(colon + 1));
    if (value.find_first_of(std::string_view("\0\r\n", 3)) != std::string_view::npos) return RequestState::invalid;
    if (is_same_name(name, "Host")) {
      if (std::exchange(has_host_, true) || !is_visible(value)) return RequestState::invalid;
      request_.host = without_port(value);
    } else if (is_same_name(name, "Authorization")) {
      if (request_.authorization) return RequestState::invalid;
      request_.authorization = value;
    } else if (is_same_name(name, "Transfer-Encoding") || (is_same_name(name, "Content-Length") && value != "0")) {
      return RequestState::has_content;
    }
    return RequestState::complete;
  }

  HttpRequest request_;
  bool is_1_1_ = false;
  bool has_host_ = false;
  std::optional<std::string> target_host_;
};

}  // namespace

HttpRequest parse_request(std::string_view received) {
  const std::size_t end = received.substr(0, kMaxRequestBytes).find(kHeadEnd);
  if (end != std::string_view::npos) return HeadParser().parse(received.substr(0, end));
  HttpRequest request;
  if (received.size() >= kMaxRequestBytes) request.state = RequestState::too_long;
  return request;
}

}  // namespace tidemark
