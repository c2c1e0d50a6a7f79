// Streams, events and the capture of CUDA graphs. Work is never executed, so everything is always complete.
#include "phantom/gpu/abi.h"
#include "phantom/gpu/attributes.h"
#include "phantom/gpu/capture.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {

TIDEMARK_PHANTOM_API int cudaStreamCreate(Handle* stream) {
  *stream = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamCreateWithFlags(Handle* stream, unsigned) {
  return cudaStreamCreate(stream);
}
TIDEMARK_PHANTOM_API int cudaStreamCreateWithPriority(Handle* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
TIDEMARK_PHANTOM_API int cudaStreamDestroy(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamQuery(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamSynchronize(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamGetPriority(Handle, int* priority) {
  *priority = 0;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamGetFlags(Handle, unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamGetDevice(Handle, int* device) {
  *device = current_device();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamWaitEvent(Handle stream, Handle event, unsigned) {
  captures().wait(stream, event);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamAddCallback(Handle stream, void (*callback)(Handle, int, void*), void* data,
                                               unsigned) {
  callback(stream, kSuccess, data);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaLaunchHostFunc(Handle stream, void (*function)(void*), void* data) {
  if (captures().launch(stream)) return kSuccess;  // captured, not executed
  function(data);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaEventCreate(Handle* event) {
  *event = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaEventCreateWithFlags(Handle* event, unsigned) {
  return cudaEventCreate(event);
}
TIDEMARK_PHANTOM_API int cudaEventDestroy(Handle event) {
  captures().forget(event);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaEventRecord(Handle event, Handle stream) {
  captures().record(event, stream);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaEventRecordWithFlags(Handle event, Handle stream, unsigned) {
  return cudaEventRecord(event, stream);
}
TIDEMARK_PHANTOM_API int cudaEventQuery(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaEventSynchronize(Handle) {
  return kSuccess;
}
// Programs divide by it.
TIDEMARK_PHANTOM_API int cudaEventElapsedTime(float* milliseconds, Handle, Handle) {
  *milliseconds = 1;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaEventElapsedTime_v2(float* milliseconds, Handle, Handle) {
  *milliseconds = 1;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current = 0;
  const int before = current;
  current = *mode;
  *mode = before;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaStreamBeginCapture(Handle stream, int) {
  return captures().begin(stream, nullptr) ? kSuccess : report(kStreamCaptureUnsupported);
}
TIDEMARK_PHANTOM_API int cudaStreamBeginCaptureToGraph(Handle stream, Handle graph, const Handle*, const void*,
                                                       std::size_t, int) {
  return captures().begin(stream, graph) ? kSuccess : report(kStreamCaptureUnsupported);
}
TIDEMARK_PHANTOM_API int cudaStreamEndCapture(Handle stream, Handle* graph) {
  *graph = captures().end(stream);
  return *graph != nullptr ? kSuccess : report(kInvalidValue);
}
TIDEMARK_PHANTOM_API int cudaStreamIsCapturing(Handle stream, int* status) {
  *status = captures().of(stream) != nullptr ? 1 : 0;
  return kSuccess;
}

namespace {

int capture_info(Handle stream, int* status, unsigned long long* id, Handle* graph, const Handle** dependencies,
                 std::size_t* count) {
  const Graph* const captured = captures().of(stream);
  *status = captured != nullptr ? 1 : 0;
  if (captured == nullptr) return kSuccess;
  if (id != nullptr) *id = captured->id;
  if (graph != nullptr) *graph = const_cast<Graph*>(captured);
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return kSuccess;
}

}  // namespace

// CUDA 13: with edges. CUDA 12 calls this _v3, and has _v2 without them.
TIDEMARK_PHANTOM_API int cudaStreamGetCaptureInfo(Handle stream, int* status, unsigned long long* id, Handle* graph,
                                                  const Handle** dependencies, const void** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return capture_info(stream, status, id, graph, dependencies, count);
}
TIDEMARK_PHANTOM_API int cudaStreamGetCaptureInfo_v3(Handle stream, int* status, unsigned long long* id, Handle* graph,
                                                     const Handle** dependencies, const void** edges,
                                                     std::size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}
TIDEMARK_PHANTOM_API int cudaStreamGetCaptureInfo_v2(Handle stream, int* status, unsigned long long* id, Handle* graph,
                                                     const Handle** dependencies, std::size_t* count) {
  return capture_info(stream, status, id, graph, dependencies, count);
}
TIDEMARK_PHANTOM_API int cudaStreamUpdateCaptureDependencies(Handle, Handle*, const void*, std::size_t, unsigned) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaStreamUpdateCaptureDependencies_v2(Handle, Handle*, const void*, std::size_t, unsigned) {
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaGraphCreate(Handle* graph, unsigned) {
  *graph = captures().create();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphDestroy(Handle graph) {
  captures().destroy(graph);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphGetNodes(Handle graph, Handle* nodes, std::size_t* count) {
  const std::size_t there = static_cast<const Graph*>(graph)->nodes;
  if (nodes != nullptr)
    for (std::size_t index = 0; index < *count; ++index) nodes[index] = index < there ? new_handle() : nullptr;
  *count = there;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphInstantiate(Handle* executable, Handle, unsigned long long) {
  *executable = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphInstantiateWithFlags(Handle* executable, Handle, unsigned long long) {
  *executable = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphExecDestroy(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphLaunch(Handle, Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphUpload(Handle, Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphDebugDotPrint(Handle, const char*, unsigned) {
  return kSuccess;
}

// The runtime owns the object from now on and would destroy it with its graph. Nothing runs, so it is destroyed when it
// is released.
TIDEMARK_PHANTOM_API int cudaUserObjectCreate(Handle* object, void*, void (*)(void*), unsigned, unsigned) {
  *object = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaUserObjectRelease(Handle, unsigned) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGraphRetainUserObject(Handle, Handle, unsigned, unsigned) {
  return kSuccess;
}

}  // namespace tidemark::phantom
