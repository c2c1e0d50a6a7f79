#include "http/curl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>

namespace tidemark::curl {
namespace {

Functions functions;  // NOLINT: the library's, which is loaded once

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<const Functions*> load_once() {
  void* library = nullptr;
  // Debian's second one is built with another TLS library; some systems have only that.
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return Error{
        "sending over HTTP needs libcurl, which is not installed (Debian, Ubuntu: apt install libcurl4; "
        "Fedora, RHEL: dnf install libcurl)"};
  }
  Functions& f = functions;
  const bool complete =
      find(library, "curl_global_init", f.global_init) && find(library, "curl_easy_init", f.easy_init) &&
      find(library, "curl_easy_setopt", f.easy_setopt) && find(library, "curl_easy_perform", f.easy_perform) &&
      find(library, "curl_easy_getinfo", f.easy_getinfo) && find(library, "curl_easy_cleanup", f.easy_cleanup) &&
      find(library, "curl_easy_strerror", f.easy_strerror) && find(library, "curl_slist_append", f.slist_append) &&
      find(library, "curl_slist_free_all", f.slist_free_all);
  if (!complete || f.global_init(kGlobalDefault) != kOk) {
    return Error{"libcurl does not work: it lacks functions of version 7.32 or could not be initialized"};
  }
  return &functions;
}

}  // namespace

Result<const Functions*> load() {
  static const Result<const Functions*> kLoaded = load_once();
  return kLoaded;
}

}  // namespace tidemark::curl
