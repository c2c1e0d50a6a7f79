// The driver's streams and events, forwarded to the runtime's.
#include "phantom/gpu/abi.h"
#include "phantom/gpu/capture.h"

namespace tidemark::phantom {

TIDEMARK_PHANTOM_API int cuStreamCreate(Handle* stream, unsigned) {
  *stream = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuStreamDestroy_v2(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuStreamSynchronize(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuStreamWaitEvent(Handle stream, Handle event, unsigned) {
  captures().wait(stream, event);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuEventCreate(Handle* event, unsigned) {
  *event = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuEventDestroy_v2(Handle event) {
  captures().forget(event);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuEventRecord(Handle event, Handle stream) {
  captures().record(event, stream);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuEventSynchronize(Handle) {
  return kSuccess;
}

}  // namespace tidemark::phantom
