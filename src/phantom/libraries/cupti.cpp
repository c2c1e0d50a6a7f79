// CUPTI. Nothing runs on a phantom GPU, so there is nothing to trace: every function returns "not supported".
#include "phantom/gpu/abi.h"

namespace tidemark::phantom {
namespace {

// CUptiResult
constexpr int kCuptiSuccess = 0;
constexpr int kCuptiMaximumReached = 12;
constexpr int kCuptiNotSupported = 27;

}  // namespace

TIDEMARK_PHANTOM_API int cuptiGetVersion(unsigned* version) {
  *version = 24;  // CUPTI_API_VERSION of CUDA 12.4 and later
  return kCuptiSuccess;
}
TIDEMARK_PHANTOM_API int cuptiSubscribe(Handle*, void*, void*) {
  return kCuptiNotSupported;
}
TIDEMARK_PHANTOM_API int cuptiSubscribe_v2(Handle*, void*, void*, void*) {
  return kCuptiNotSupported;
}
TIDEMARK_PHANTOM_API int cuptiUnsubscribe(Handle) {
  return kCuptiSuccess;
}
TIDEMARK_PHANTOM_API int cuptiEnableCallback(unsigned, Handle, int, unsigned) {
  return kCuptiNotSupported;
}
TIDEMARK_PHANTOM_API int cuptiEnableDomain(unsigned, Handle, int) {
  return kCuptiNotSupported;
}
TIDEMARK_PHANTOM_API int cuptiFinalize() {
  return kCuptiSuccess;
}
TIDEMARK_PHANTOM_API int cuptiActivityGetNextRecord(const void*, std::size_t, Handle* record) {
  *record = nullptr;
  return kCuptiMaximumReached;
}
TIDEMARK_PHANTOM_API int cuptiActivityGetNumDroppedRecords(Handle, unsigned, std::size_t* dropped) {
  *dropped = 0;
  return kCuptiSuccess;
}
TIDEMARK_PHANTOM_API int cuptiGetResultString(int result, const char** text) {
  *text = result == kCuptiSuccess        ? "CUPTI_SUCCESS"
          : result == kCuptiNotSupported ? "CUPTI_ERROR_NOT_SUPPORTED"
                                         : "CUPTI_ERROR_UNKNOWN";
  return kCuptiSuccess;
}
TIDEMARK_PHANTOM_API int cuptiGetCallbackName(int, unsigned, const char** name) {
  *name = "";
  return kCuptiSuccess;
}

}  // namespace tidemark::phantom
