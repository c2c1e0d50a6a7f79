// Answers of malicious servers: the accepted data is bounded, in bytes and in time.
#include "http/post.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/scoped_fd.h"
#include "http/curl_api.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = std::size_t{1200} << 20;  // sent at most

// Answers one request with `head`, and then repeats `part`.
class EndlessServer {
 public:
  EndlessServer(std::string head, std::string part, std::chrono::milliseconds pause)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
    socklen_t length = sizeof(name);
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    if (::bind(socket_.get(), address, length) != 0 || ::listen(socket_.get(), 1) != 0 ||
        ::getsockname(socket_.get(), address, &length) != 0) {
      std::abort();
    }
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
    thread_ = std::thread([this, head = std::move(head), part = std::move(part), pause] {
      const ScopedFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char byte = 0;
      if (::recv(client.get(), &byte, 1, 0) != 1) return;
      bool goes_on = ::send(client.get(), head.data(), head.size(), MSG_NOSIGNAL) == ssize_t(head.size());
      while (goes_on && sent_ < kMost) {
        const ssize_t sent = ::send(client.get(), part.data(), part.size(), MSG_NOSIGNAL);
        goes_on = sent > 0;
        sent_ += goes_on ? std::size_t(sent) : 0;
        std::this_thread::sleep_for(pause);
      }
    });
  }
  ~EndlessServer() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }

  [[nodiscard]] const std::string& url() const { return url_; }
  /// The number of bytes sent when the client has closed the connection.
  std::size_t sent() {
    thread_.join();
    thread_ = std::thread([] {});
    return sent_;
  }

 private:
  ScopedFd socket_;
  std::string url_;
  std::size_t sent_ = 0;
  std::thread thread_;
};

class PostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!curl::load()) GTEST_SKIP() << "libcurl is not installed";
  }
  std::atomic<bool> stop_{false};
};

TEST_F(PostTest, EndlessBodyIsTruncated) {
  for (const std::string head : {"HTTP/1.1 200 OK\r\nContent-Length: 1300000000\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"}) {
    EndlessServer server(head, std::string(65536, 'x'), 0ms);
    const auto answer = post({server.url(), "{}", {}, 1h}, stop_);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, std::string(4096, 'x'));
    EXPECT_LT(server.sent(), std::size_t{64} << 20) << "what the system keeps for the connection";
  }
}

TEST_F(PostTest, EndlessHeadersAreAnError) {
  EndlessServer server("HTTP/1.1 200 OK\r\n", "X: " + std::string(1000, 'x') + "\r\n", 0ms);
  const auto answer = post({server.url(), "{}", {}, 1h}, stop_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, server.url() + ": answers with more than 64 KiB of headers");
  EXPECT_LT(server.sent(), std::size_t{64} << 20);
}

// Regardless of progress.
TEST_F(PostTest, TimeLimitCoversTheWholeAnswer) {
  EndlessServer server("HTTP/1.1 200 OK\r\nContent-Length: 1300000000\r\n\r\n", "x", 10ms);
  EXPECT_FALSE(post({server.url(), "{}", {}, 300ms}, stop_).ok());
  EXPECT_LT(server.sent(), 4096U);
}

}  // namespace
}  // namespace tidemark
