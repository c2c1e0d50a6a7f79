// This project's declarations of libcurl compared with curl's header.
#include <curl/curl.h>
#include <gtest/gtest.h>

#include "http/curl_api.h"

namespace tidemark {
namespace {

static_assert(sizeof(curl::List) == sizeof(curl_slist) && offsetof(curl::List, next) == offsetof(curl_slist, next));
static_assert(curl::kOk == static_cast<int>(CURLE_OK) && curl::kAborted == static_cast<int>(CURLE_ABORTED_BY_CALLBACK));
static_assert(curl::kResponseCode == static_cast<int>(CURLINFO_RESPONSE_CODE));
static_assert(curl::kGlobalDefault == CURL_GLOBAL_DEFAULT && curl::kErrorSize == CURL_ERROR_SIZE);
static_assert(curl::kHttpAndHttps == (CURLPROTO_HTTP | CURLPROTO_HTTPS) &&
              curl::kHttp11 == long{CURL_HTTP_VERSION_1_1});
static_assert(sizeof(curl_off_t) == sizeof(long long));

#define SAME_OPTION(ours, theirs) static_assert(static_cast<int>(curl::ours) == static_cast<int>(theirs), #theirs)
SAME_OPTION(kPostFieldSize, CURLOPT_POSTFIELDSIZE);
SAME_OPTION(kConnectTimeoutMs, CURLOPT_CONNECTTIMEOUT_MS);
SAME_OPTION(kTimeoutMs, CURLOPT_TIMEOUT_MS);
SAME_OPTION(kNoSignal, CURLOPT_NOSIGNAL);
SAME_OPTION(kNoProgress, CURLOPT_NOPROGRESS);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // since 7.85; older versions lack the replacement
SAME_OPTION(kProtocols, CURLOPT_PROTOCOLS);
#pragma GCC diagnostic pop
SAME_OPTION(kHttpVersion, CURLOPT_HTTP_VERSION);
SAME_OPTION(kUrl, CURLOPT_URL);
SAME_OPTION(kPostFields, CURLOPT_POSTFIELDS);
SAME_OPTION(kUserAgent, CURLOPT_USERAGENT);
SAME_OPTION(kHttpHeader, CURLOPT_HTTPHEADER);
SAME_OPTION(kErrorBuffer, CURLOPT_ERRORBUFFER);
SAME_OPTION(kWriteData, CURLOPT_WRITEDATA);
SAME_OPTION(kHeaderData, CURLOPT_HEADERDATA);
SAME_OPTION(kProgressData, CURLOPT_XFERINFODATA);
SAME_OPTION(kWriteFunction, CURLOPT_WRITEFUNCTION);
SAME_OPTION(kHeaderFunction, CURLOPT_HEADERFUNCTION);
SAME_OPTION(kProgressFunction, CURLOPT_XFERINFOFUNCTION);

TEST(CurlHeader, DeclarationsAreTheSame) {
  SUCCEED();  // checked at compile time
}

}  // namespace
}  // namespace tidemark
