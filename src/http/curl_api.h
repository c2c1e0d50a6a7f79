// The libcurl functions in use, declared here: libcurl is loaded when something is sent, so that only senders need it,
// it uses the TLS library and certificates of the system, and the portable build links nothing.
// tests/unit/publish/curl_header_test.cpp compares them with curl's header.
//
// Reference: https://curl.se/libcurl/c
#pragma once

#include <memory>

#include "base/result.h"

namespace tidemark::curl {

using Handle = void;  ///< CURL

struct List {  ///< curl_slist
  char* data;
  List* next;
};

inline constexpr long kGlobalDefault = 3;  ///< CURL_GLOBAL_DEFAULT

/// CURLcode, with the values that are distinguished here.
enum Code : int { kOk = 0, kAborted = 42 };

/// CURLoption
enum Option : int {
  kPostFieldSize = 60,
  kConnectTimeoutMs = 156,
  kTimeoutMs = 155,
  kNoSignal = 99,
  kNoProgress = 43,
  kProtocols = 181,
  kHttpVersion = 84,
  kUrl = 10002,
  kPostFields = 10015,
  kUserAgent = 10018,
  kHttpHeader = 10023,
  kErrorBuffer = 10010,
  kWriteData = 10001,
  kHeaderData = 10029,
  kProgressData = 10057,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
  kProgressFunction = 20219,  ///< CURLOPT_XFERINFOFUNCTION
};

inline constexpr int kResponseCode = 0x200002;  ///< CURLINFO_RESPONSE_CODE
inline constexpr long kHttpAndHttps = 3;        ///< CURLPROTO_HTTP | CURLPROTO_HTTPS
inline constexpr long kHttp11 = 2;              ///< CURL_HTTP_VERSION_1_1
inline constexpr int kErrorSize = 256;          ///< CURL_ERROR_SIZE

using Receive = std::size_t (*)(char*, std::size_t, std::size_t, void*);
using Progress = int (*)(void*, long long, long long, long long, long long);

struct Functions {
  Code (*global_init)(long) = nullptr;
  Handle* (*easy_init)() = nullptr;
  Code (*easy_setopt)(Handle*, Option, ...) = nullptr;
  Code (*easy_perform)(Handle*) = nullptr;
  Code (*easy_getinfo)(Handle*, int, ...) = nullptr;
  void (*easy_cleanup)(Handle*) = nullptr;
  const char* (*easy_strerror)(Code) = nullptr;
  List* (*slist_append)(List*, const char*) = nullptr;
  void (*slist_free_all)(List*) = nullptr;
};

/// Loads libcurl once; later calls return the same. It stays loaded. The error explains how to install it. Any thread.
[[nodiscard]] Result<const Functions*> load();

}  // namespace tidemark::curl
