// Parsing of requests: the examples and the errors of RFC 9112.
#include "http/request.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark {
namespace {

constexpr auto kComplete = RequestState::complete;
constexpr auto kInvalid = RequestState::invalid;

TEST(Request, HasMethodAndPath) {
  const HttpRequest request = parse_request(
      "GET /metrics?x=1 HTTP/1.1\r\nHost:  gpu1:9400 \r\nX:\r\nauthorization: Bearer a b\r\ncontent-length: "
      "0\r\n\r\nmore");
  ASSERT_EQ(request.state, kComplete);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.host, "gpu1");
  EXPECT_EQ(request.authorization, "Bearer a b");
}

TEST(Request, HostsArePartsOfAddresses) {
  const auto host = [](const std::string& line) { return parse_request("GET " + line + "\r\n\r\n").host; };
  EXPECT_EQ(host("/ HTTP/1.1\r\nHost: [::1]:9400"), "[::1]");
  EXPECT_EQ(host("/ HTTP/1.1\r\nHost: [::1]"), "[::1]");
  EXPECT_EQ(host("/ HTTP/1.1\r\nHost: localhost"), "localhost");
  EXPECT_EQ(host("/ HTTP/1.1\r\nHost:"), "");
  EXPECT_EQ(host("/ HTTP/1.0"), "");
  // RFC 9112, 3.2.2: the header is ignored.
  EXPECT_EQ(host("http://other:1/x HTTP/1.1\r\nHost: localhost"), "other");
  EXPECT_EQ(parse_request("GET HTTP://other HTTP/1.1\r\nHost: x\r\n\r\n").path, "/");
  EXPECT_EQ(parse_request("GET http://other/x?y HTTP/1.1\r\nHost: x\r\n\r\n").path, "/x");
}

TEST(Request, IsCompleteAtItsEmptyLine) {
  const std::string whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parse_request(whole.substr(0, size)).state, RequestState::incomplete) << size;
  }
  EXPECT_EQ(parse_request(whole).state, kComplete);
  EXPECT_EQ(parse_request("GET / HTTP/1.0\r\n\r\n").state, kComplete);
}

TEST(Request, IsBounded) {
  const std::string begin = "GET / HTTP/1.0\r\nX: ";
  const auto state = [&](std::size_t size, const std::string& end) {
    return parse_request(begin + std::string(size - begin.size() - end.size(), 'x') + end).state;
  };
  EXPECT_EQ(state(kMaxRequestBytes, "\r\n\r\n"), kComplete);
  EXPECT_EQ(state(kMaxRequestBytes + 1, "\r\n\r\n"), RequestState::too_long);
  EXPECT_EQ(state(kMaxRequestBytes, ""), RequestState::too_long);
  EXPECT_EQ(state(kMaxRequestBytes - 1, ""), RequestState::incomplete);
}

TEST(Request, AmbiguousRequestsAreInvalid) {
  for (const std::string head : {
           "GET / HTTP/1.1",                           // no host
           "GET / HTTP/1.1\r\nHost: a\r\nHost: b",     // two
           "GET / HTTP/1.1\r\nHost: a b",              //
           "GET / HTTP/1.1\r\nHost : a",               // RFC 9112, 5.1
           "GET / HTTP/1.1\r\nHost: a\r\n folded: x",  // 5.2
           "GET / HTTP/1.1\r\nHost: a\r\nno colon",    //
           "GET / HTTP/1.1\r\nHost: a\r\nX: \n",       // 2.2
           "GET / HTTP/2.0\r\nHost: a",                //
           "GET / HTTP/1.1 x\r\nHost: a",              //
           "GET  / HTTP/1.1\r\nHost: a",               //
           "GET metrics HTTP/1.1\r\nHost: a",          //
           "G(T / HTTP/1.1\r\nHost: a",                //
           " / HTTP/1.1\r\nHost: a",                   //
           "GET /\r\nHost: a",                         // HTTP/0.9
           "",                                         //
           "GET / HTTP/1.0\r\nAuthorization: a\r\nAuthorization: b",
       }) {
    EXPECT_EQ(parse_request(head + "\r\n\r\n").state, kInvalid) << head;
  }
  EXPECT_EQ(parse_request(std::string("GET / HTTP/1.0\r\nX: \0\r\n\r\n", 24)).state, kInvalid);
}

TEST(Request, ContentIsSeen) {
  EXPECT_EQ(parse_request("POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx").state, RequestState::has_content);
  EXPECT_EQ(parse_request("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").state, RequestState::has_content);
  EXPECT_EQ(parse_request("GET / HTTP/1.0\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n").state,
            RequestState::has_content);
}

}  // namespace
}  // namespace tidemark
