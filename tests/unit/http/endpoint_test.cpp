// The page over HTTP: access to it, and the results of bad requests and settings.
#include "http/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"
#include "unit/http/http_peer.h"

namespace tidemark {
namespace {

using testing::connect_to;
using testing::exchange;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
using ::testing::StartsWith;
using testing::TemporaryFolder;

std::unique_ptr<Endpoint> start(const EndpointOptions& options = {"127.0.0.1", 0, ""},
                                const std::string& page = "the page\n") {
  auto endpoint = Endpoint::start(options, "text/plain", [page] { return page; });
  EXPECT_TRUE(endpoint.ok()) << (endpoint ? "" : endpoint.error().message);
  return std::move(*endpoint);
}

std::uint16_t port_of(const Endpoint& endpoint) {
  const std::string& url = endpoint.url();
  return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

std::string get(const Endpoint& endpoint, const std::string& path, const std::string& headers) {
  return exchange(port_of(endpoint), "GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n");
}

const std::string kHere = "Host: 127.0.0.1:9400\r\n";

TEST(EndpointOptions, AreParsed) {
  const auto parsed = [](const std::string& text) {
    const auto options = parse_endpoint(text);
    return options ? options->address + " " + std::to_string(options->port) : options.error().message;
  };
  EXPECT_EQ(parsed("127.0.0.1:9400"), "127.0.0.1 9400");
  EXPECT_EQ(parsed("9400"), "127.0.0.1 9400");
  EXPECT_EQ(parsed(":9400"), "127.0.0.1 9400");
  EXPECT_EQ(parsed("localhost:1"), "127.0.0.1 1");
  EXPECT_EQ(parsed("[::1]:9400"), "::1 9400");
  EXPECT_EQ(parsed("0.0.0.0:9400"), "0.0.0.0 9400");
  for (const char* wrong : {"", "x", "::1:9400", "127.0.0.1:", "127.0.0.1:70000", "host:9400", "1.2.3:1", "1:2:3"}) {
    EXPECT_THAT(parsed(wrong), HasSubstr("expected ADDRESS:PORT")) << wrong;
  }
  EXPECT_TRUE(is_loopback({"127.3.2.1", 1}));
  EXPECT_TRUE(is_loopback({"::1", 1}));
  EXPECT_FALSE(is_loopback({"0.0.0.0", 1}));
  EXPECT_FALSE(is_loopback({"::", 1}));
  EXPECT_FALSE(is_loopback({"10.0.0.1", 1}));
}

TEST(Endpoint, ServesThePage) {
  const auto endpoint = start();
  const std::string answer = get(*endpoint, "/metrics", kHere);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nthe page\n"));
  EXPECT_THAT(get(*endpoint, "/metrics?x=1", kHere), HasSubstr("the page"));
  EXPECT_THAT(get(*endpoint, "/", kHere), HasSubstr("/metrics"));
  EXPECT_THAT(get(*endpoint, "/other", kHere), StartsWith("HTTP/1.1 404"));
}

TEST(Endpoint, ServesIpv6) {
  auto endpoint = Endpoint::start({"::1", 0, ""}, "text/plain", [] { return std::string("the page\n"); });
  if (!endpoint) GTEST_SKIP() << endpoint.error().message;
  EXPECT_THAT((*endpoint)->url(), StartsWith("http://[::1]:"));
  const std::string port = (*endpoint)->url().substr((*endpoint)->url().rfind(':') + 1);
  EXPECT_THAT(
      exchange(static_cast<std::uint16_t>(std::stoi(port)), "GET /metrics HTTP/1.0\r\nHost: [::1]:1\r\n\r\n", true),
      HasSubstr("the page"));
}

// A browser can be made to request another name that leads here (DNS rebinding).
TEST(Endpoint, OtherHostsNamesAreRefused) {
  const auto endpoint = start();
  EXPECT_THAT(get(*endpoint, "/metrics", "Host: attacker.example\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(get(*endpoint, "/metrics", "Host: 127.attacker.example\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(get(*endpoint, "/metrics", ""), Not(HasSubstr("the page")));
  EXPECT_THAT(get(*endpoint, "/metrics", "Host: localhost:1\r\n"), HasSubstr("the page"));
}

TEST(Endpoint, ATokenHasToBeShown) {
  const auto endpoint = start({"127.0.0.1", 0, "0123456789abcdef"});
  EXPECT_THAT(get(*endpoint, "/metrics", kHere), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get(*endpoint, "/metrics", kHere + "Authorization: Bearer 0123456789abcdeg\r\n"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get(*endpoint, "/metrics", "Host: gpu1:1\r\nAuthorization: Bearer 0123456789abcdef\r\n"),
              HasSubstr("the page"));
}

TEST(Endpoint, OnlyReadingIsAllowed) {
  const auto endpoint = start();
  EXPECT_THAT(exchange(port_of(*endpoint), "POST /metrics HTTP/1.0\r\nContent-Length: 1\r\n" + kHere + "\r\nx"),
              Not(HasSubstr("the page")));
  EXPECT_THAT(get(*endpoint, "/metrics", kHere + "X: " + std::string(20'000, 'x') + "\r\n"),
              Not(HasSubstr("the page")));
  EXPECT_THAT(exchange(port_of(*endpoint), "\x16\x03\x01\r\n\r\n"), Not(HasSubstr("the page")));
  EXPECT_THAT(get(*endpoint, "/metrics", kHere), HasSubstr("the page"));  // it goes on
}

TEST(Endpoint, OtherMachinesNeedAToken) {
  const auto endpoint = Endpoint::start({"0.0.0.0", 0, ""}, "text/plain", [] { return std::string(); });
  ASSERT_FALSE(endpoint.ok());
  EXPECT_THAT(endpoint.error().message, HasSubstr("--listen-token-file"));
}

TEST(Endpoint, PortInUse) {
  const auto first = start();
  const auto second = Endpoint::start({"127.0.0.1", port_of(*first), ""}, "text/plain", [] { return std::string(); });
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("another program does"));
}

// ---- slow and malicious clients ----

const std::string kBegun = "GET /metrics HTTP/1.1\r\n" + kHere + "X: ";

// Whether the connection was closed.
bool is_closed(int fd, std::chrono::milliseconds patience) {
  pollfd polled{fd, POLLIN, 0};
  std::array<char, 1> byte{};
  return ::poll(&polled, 1, static_cast<int>(patience.count())) == 1 && ::recv(fd, byte.data(), 1, 0) <= 0;
}

std::vector<ScopedFd> slow_clients(const Endpoint& endpoint, std::size_t count) {
  std::vector<ScopedFd> clients;
  for (std::size_t n = 0; n < count; ++n) {
    clients.push_back(connect_to(port_of(endpoint)));
    EXPECT_EQ(::send(clients.back().get(), kBegun.data(), kBegun.size(), MSG_NOSIGNAL), ssize_t(kBegun.size())) << n;
  }
  return clients;
}

// Connections are accepted in their order: when the last one has its answer, all have been.
TEST(Endpoint, SlowClientsDoNotBlockOthers) {
  const auto endpoint = start({"127.0.0.1", 0, "", 1h});
  const std::size_t count = Endpoint::kMaxConnections + 36;
  const std::vector<ScopedFd> clients = slow_clients(*endpoint, count);
  EXPECT_THAT(get(*endpoint, "/metrics", kHere), HasSubstr("the page"));
  std::size_t closed = 0;
  // One connection was the last client's, which has been closed since.
  for (; closed < count && is_closed(clients[closed].get(), closed < 37 ? 60s : 0s); ++closed) {
  }
  EXPECT_EQ(closed, 37U) << "the oldest";
  for (; closed < count; ++closed) EXPECT_FALSE(is_closed(clients[closed].get(), 0s)) << closed;
  EXPECT_THAT(get(*endpoint, "/metrics", kHere), HasSubstr("the page"));
}

TEST(Endpoint, MostDescriptorsAreNotForClients) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{80, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto endpoint = start({"127.0.0.1", 0, "", 1h});
  ::setrlimit(RLIMIT_NOFILE, &before);
  const std::vector<ScopedFd> clients = slow_clients(*endpoint, 20);
  EXPECT_THAT(get(*endpoint, "/metrics", kHere), HasSubstr("the page"));
  for (std::size_t n = 0; n < 11; ++n) EXPECT_TRUE(is_closed(clients[n].get(), 60s)) << n;  // 10 are an eighth
  for (std::size_t n = 11; n < 20; ++n) EXPECT_FALSE(is_closed(clients[n].get(), 0s)) << n;
}

// Waits no longer than the time limit itself: a slow machine only takes longer.
TEST(Endpoint, TimeLimitCoversTheWholeRequest) {
  const auto endpoint = start({"127.0.0.1", 0, "", 200ms});
  const std::vector<ScopedFd> clients = slow_clients(*endpoint, 1);
  const auto until = std::chrono::steady_clock::now() + 60s;
  bool closed = false;
  for (; !closed && std::chrono::steady_clock::now() < until; closed = is_closed(clients[0].get(), 20ms)) {
    (void)!::send(clients[0].get(), "a", 1, MSG_NOSIGNAL);
  }
  EXPECT_TRUE(closed);
}

TEST(Endpoint, TimeLimitCoversTheAnswerToo) {
  const auto endpoint = start({"127.0.0.1", 0, "", 200ms}, std::string(std::size_t{64} << 20, 'x'));
  const ScopedFd client = connect_to(port_of(*endpoint));
  const std::string request = "GET /metrics HTTP/1.1\r\n" + kHere + "\r\n";
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
  std::this_thread::sleep_for(1s);
  std::size_t received = 0;
  std::vector<char> bytes(std::size_t{1} << 20);
  for (ssize_t got = 0; (got = ::recv(client.get(), bytes.data(), bytes.size(), 0)) > 0;) received += std::size_t(got);
  EXPECT_GT(received, 0U);
  EXPECT_LT(received, std::size_t{64} << 20);
}

TEST(Endpoint, RequestsMayComeInPieces) {
  const auto endpoint = start({"127.0.0.1", 0, "", 1h});
  const ScopedFd client = connect_to(port_of(*endpoint));
  for (const char letter : "GET /metrics HTTP/1.1\r\n" + kHere + "\r\n") {
    ASSERT_EQ(::send(client.get(), &letter, 1, MSG_NOSIGNAL), 1);
    std::this_thread::sleep_for(1ms);
  }
  std::array<char, 4096> bytes{};
  EXPECT_THAT(std::string(bytes.data(), std::size_t(::recv(client.get(), bytes.data(), 12, MSG_WAITALL))),
              StartsWith("HTTP/1.1 200"));
}

// Otherwise the connection would be reset, and data in transit lost.
TEST(Endpoint, AnswerArrivesDespiteExtraInput) {
  const auto endpoint = start({"127.0.0.1", 0, "", 1h}, std::string(std::size_t{1} << 20, 'x'));
  const std::string request = "GET /metrics HTTP/1.1\r\n" + kHere + "\r\n";
  for (int n = 0; n < 20; ++n) {
    EXPECT_GT(exchange(port_of(*endpoint), request + request + std::string(100'000, 'y')).size(), std::size_t{1} << 20);
  }
}

TEST(Endpoint, HeadHasNoContent) {
  const auto endpoint = start();
  const std::string answer = exchange(port_of(*endpoint), "HEAD /metrics HTTP/1.1\r\n" + kHere + "\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 9\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("the page")));
}

TEST(TokenFile, IsForItsOwnerOnly) {
  const TemporaryFolder folder;
  const std::string path = folder.write("token", "0123456789abcdef0123\nmore\n");
  ::chmod(path.c_str(), 0644);
  EXPECT_THAT(read_token_file(path).error().message, HasSubstr("chmod 600"));
  ::chmod(path.c_str(), 0600);
  const auto token = read_token_file(path);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(*token, "0123456789abcdef0123");
  for (const std::string text : {"", "short", "0123456789 abcdef0123"}) {
    folder.write("token", text);
    EXPECT_THAT(read_token_file(path).error().message, HasSubstr("no token")) << text;
  }
  EXPECT_THAT(read_token_file(folder.at("none")).error().message, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace tidemark
