#include "http/post.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "http/curl_api.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxAnswerBytes = 4096;
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;
constexpr long kMaxRetrySeconds = 3600;
constexpr std::chrono::milliseconds kPatienceToConnect{5000};

struct Received {
  PostAnswer answer;
  std::size_t header_bytes = 0;
  bool is_cut = false;  // the rest of a longer body was not awaited
};

// Returning fewer bytes than received ends the transfer.
std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* into) {
  Received& received = *static_cast<Received*>(into);
  std::string& body = received.answer.body;
  body.append(bytes, std::min(size * count, kMaxAnswerBytes - body.size()));
  received.is_cut = body.size() == kMaxAnswerBytes;
  return received.is_cut ? 0 : size * count;
}

std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* into) {
  Received& received = *static_cast<Received*>(into);
  received.header_bytes += size * count;
  if (received.header_bytes > kMaxHeaderBytes) return 0;
  constexpr std::string_view kName = "retry-after:";
  const std::string_view line(bytes, size * count);
  if (line.size() > kName.size() && ::strncasecmp(line.data(), kName.data(), kName.size()) == 0) {
    const std::size_t begin = std::min(line.find_first_not_of(' ', kName.size()), line.size());
    long seconds = 0;
    const auto [rest, error] = std::from_chars(line.data() + begin, line.data() + line.size(), seconds);
    if (error == std::errc() && seconds >= 0) {  // else a date, which few servers send
      received.answer.retry_after = std::chrono::seconds(std::min(seconds, kMaxRetrySeconds));
    }
  }
  return size * count;
}

int is_stopped(void* stop, long long, long long, long long, long long) {
  return static_cast<const std::atomic<bool>*>(stop)->load() ? 1 : 0;
}

}  // namespace

Result<void> check_url(const std::string& url) {
  const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  const bool plain =
      std::all_of(url.begin(), url.end(), [](unsigned char letter) { return letter > ' ' && letter < 0x7f; });
  if (scheme != 0 && url.size() > scheme && url[scheme] != '/' && plain) return {};
  return Error{fmt::format("'{}' is no URL (expected one that begins with http:// or https://)", shown_url(url))};
}

std::string shown_url(const std::string& url) {
  std::string shown = url.substr(0, url.find_first_of("?#"));
  const std::size_t host = shown.find("://");
  if (host == std::string::npos) return shown;
  const std::size_t path = std::min(shown.find('/', host + 3), shown.size());
  const std::size_t at = shown.substr(0, path).rfind('@');
  return at == std::string::npos ? shown : shown.substr(0, host + 3) + shown.substr(at + 1);
}

Result<PostAnswer> post(const PostRequest& request, const std::atomic<bool>& stop) {
  const auto loaded = curl::load();
  if (!loaded) return loaded.error();
  const curl::Functions& f = **loaded;
  const std::unique_ptr<curl::Handle, void (*)(curl::Handle*)> handle(f.easy_init(), f.easy_cleanup);
  if (handle == nullptr) return Error{"libcurl: out of memory"};
  std::unique_ptr<curl::List, void (*)(curl::List*)> headers(nullptr, f.slist_free_all);
  const auto add_header = [&](const std::string& header) {
    curl::List* const longer = f.slist_append(headers.get(), header.c_str());
    if (longer == nullptr) return;
    static_cast<void>(headers.release());
    headers.reset(longer);
  };
  for (const std::string& header : request.headers) add_header(header);
  add_header("Expect:");  // else larger bodies wait for a "100 Continue"

  Received received;
  std::array<char, curl::kErrorSize> problem{};
  const auto set = [&](curl::Option option, auto value) { return f.easy_setopt(handle.get(), option, value); };
  set(curl::kUrl, request.url.c_str());
  set(curl::kProtocols, curl::kHttpAndHttps);
  set(curl::kHttpVersion, curl::kHttp11);
  set(curl::kPostFields, request.body.data());
  set(curl::kPostFieldSize, static_cast<long>(request.body.size()));
  set(curl::kHttpHeader, headers.get());
  set(curl::kUserAgent, "tidemark/" TIDEMARK_VERSION);
  set(curl::kNoSignal, 1L);
  set(curl::kTimeoutMs, static_cast<long>(request.patience.count()));
  set(curl::kConnectTimeoutMs, static_cast<long>(std::min(request.patience, kPatienceToConnect).count()));
  set(curl::kErrorBuffer, problem.data());
  set(curl::kWriteFunction, static_cast<curl::Receive>(take_body));
  set(curl::kWriteData, static_cast<void*>(&received));
  set(curl::kHeaderFunction, static_cast<curl::Receive>(take_header));
  set(curl::kHeaderData, static_cast<void*>(&received));
  set(curl::kNoProgress, 0L);
  set(curl::kProgressFunction, static_cast<curl::Progress>(is_stopped));
  set(curl::kProgressData, const_cast<void*>(static_cast<const void*>(&stop)));

  const curl::Code code = f.easy_perform(handle.get());
  if (code != curl::kOk && !received.is_cut) {
    const std::string why = received.header_bytes > kMaxHeaderBytes ? "answers with more than 64 KiB of headers"
                            : problem[0] != 0                       ? problem.data()
                                                                    : f.easy_strerror(code);
    return Error{fmt::format("{}: {}", shown_url(request.url), why)};
  }
  long status = 0;
  f.easy_getinfo(handle.get(), curl::kResponseCode, &status);
  received.answer.status = static_cast<int>(status);
  return std::move(received.answer);
}

}  // namespace tidemark
