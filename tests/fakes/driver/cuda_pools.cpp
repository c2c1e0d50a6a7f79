// The part of the stand-in driver for memory without addresses: physical memory that is mapped, pools, graphs.
#include "call.h"

namespace {

using namespace fakes;
using namespace tidemark::process::cuda;

struct FakeGraph {
  Device device;
  std::uint64_t bytes = 0;
};

std::string account_of(const Location& location) {
  return location.type == kLocationDevice ? device_account(location.id) : kHostAccount;
}

// NAME_params of functions for which cupti_api.h has only the beginning.
struct AsyncParameters {
  AllocateParameters common;
  Stream stream;
};
struct FreeAsyncParameters {
  DevicePointer address;
  Stream stream;
};
struct ImportParameters {
  AllocationHandle* handle;
  void* os_handle;
  int type;
};
struct RetainParameters {
  AllocationHandle* handle;
  void* address;
};
struct MulticastParameters {
  AllocationHandle* handle;
  const MulticastProperties* properties;
};
struct TrimParameters {
  MemoryPool pool;
  std::size_t least_bytes;
};
struct AddNodeParameters {
  GraphNode* node;
  Graph graph;
  const GraphNode* before;
  std::size_t before_count;
  GraphAllocation* allocation;
};
struct AddAnyNodeParameters {
  GraphNode* node;
  Graph graph;
  const GraphNode* before;
  const void* edges;
  std::size_t before_count;
  GraphNodeDescription* description;
};
struct LaunchParameters {
  GraphExec exec;
  Stream stream;
};

}  // namespace

// ---- physical memory and its mappings ----

FAKE Result cuMemAddressReserve(DevicePointer* address, std::size_t bytes, std::size_t, DevicePointer,
                                unsigned long long) {
  return usable() ? state->memory.reserve_addresses(bytes, address) : kNotInitialized;
}
FAKE Result cuMemAddressFree(DevicePointer address, std::size_t bytes) {
  return usable() ? state->memory.free_addresses(address, bytes) : kNotInitialized;
}
FAKE Result cuMemCreate(AllocationHandle* handle, std::size_t bytes, const AllocationProperties* properties,
                        unsigned long long flags) {
  return call(id::MemCreate, HERE, CreateParameters{handle, bytes, properties, flags},
              [](const CreateParameters& call) {
                return state->memory.create(account_of(call.properties->location), call.bytes, call.handle);
              });
}
FAKE Result cuMemRelease(AllocationHandle handle) {
  return call(id::MemRelease, HERE, ReleaseParameters{handle},
              [](const ReleaseParameters& call) { return state->memory.release(call.handle); });
}
FAKE Result cuMemMap(DevicePointer address, std::size_t bytes, std::size_t offset, AllocationHandle handle,
                     unsigned long long flags) {
  return call(id::MemMap, HERE, MapParameters{address, bytes, offset, handle, flags},
              [](const MapParameters& call) { return state->memory.map(call.address, call.bytes, call.handle); });
}
FAKE Result cuMemUnmap(DevicePointer address, std::size_t bytes) {
  return call(id::MemUnmap, HERE, UnmapParameters{address, bytes},
              [](const UnmapParameters& call) { return state->memory.unmap(call.address, call.bytes); });
}
FAKE Result cuMemRetainAllocationHandle(AllocationHandle* handle, void* address) {
  return call(id::MemRetainAllocationHandle, HERE, RetainParameters{handle, address},
              [](const RetainParameters& call) { return state->memory.retain(number(call.address), call.handle); });
}
FAKE Result cuMemImportFromShareableHandle(AllocationHandle* handle, void* os_handle, int type) {
  return call(id::MemImportFromShareableHandle, HERE, ImportParameters{handle, os_handle, type},
              [](const ImportParameters& call) { return state->memory.adopt(call.handle); });
}
FAKE Result cuMulticastCreate(AllocationHandle* handle, const MulticastProperties* properties) {
  return call(id::MulticastCreate, HERE, MulticastParameters{handle, properties},
              [](const MulticastParameters& call) { return state->memory.adopt(call.handle); });
}

// ---- pools ----

FAKE Result cuDeviceGetMemPool(MemoryPool* pool, Device device) {
  if (!usable()) return kNotInitialized;
  if (!known(device)) return kInvalidDevice;
  *pool = state->memory.default_pool(device);
  return kSuccess;
}
FAKE Result cuMemPoolCreate(MemoryPool* pool, const PoolDescription* description) {
  return call(id::MemPoolCreate, HERE, CreatePoolParameters{pool, &description->beginning},
              [](const CreatePoolParameters& call) {
                *call.pool = state->memory.create_pool(account_of(call.properties->location));
                return kSuccess;
              });
}
FAKE Result cuMemPoolDestroy(MemoryPool pool) {
  return call(id::MemPoolDestroy, HERE, PoolParameters{pool},
              [](const PoolParameters& call) { return state->memory.destroy_pool(call.pool); });
}
FAKE Result cuMemPoolSetAttribute(MemoryPool pool, std::int32_t attribute, void* value) {
  if (!usable()) return kNotInitialized;
  if (attribute != kPoolReleaseThreshold) return kInvalidValue;
  return state->memory.set_threshold(pool, *static_cast<std::uint64_t*>(value));
}
FAKE Result cuMemPoolGetAttribute(MemoryPool pool, std::int32_t attribute, void* value) {
  if (!usable()) return kNotInitialized;
  if (attribute != kPoolReservedNow) return kInvalidValue;
  const auto reserved = state->memory.reserved(pool);
  if (!reserved) std::abort();  // the real one trusts its callers, too
  *static_cast<std::uint64_t*>(value) = *reserved;
  return kSuccess;
}
FAKE Result cuMemPoolTrimTo(MemoryPool pool, std::size_t least_bytes) {
  return call(id::MemPoolTrimTo, HERE, TrimParameters{pool, least_bytes},
              [](const TrimParameters& call) { return state->memory.trim(call.pool, call.least_bytes); });
}

namespace {

Result allocate_async(const AsyncParameters& call) {
  MemoryPool pool = state->memory.default_pool(context->device);
  return state->memory.allocate_from(pool, call.common.bytes, call.common.address);
}
Result allocate_from_pool(const AllocateFromPoolParameters& call) {
  return state->memory.allocate_from(call.pool, call.bytes, call.address);
}
Result free_async(const FreeAsyncParameters& call) {
  return state->memory.free_async(context->device, call.address);
}

}  // namespace

FAKE Result cuMemAllocAsync(DevicePointer* address, std::size_t bytes, Stream stream) {
  return call(id::MemAllocAsync, HERE, AsyncParameters{{address, bytes}, stream}, allocate_async);
}
FAKE Result cuMemAllocAsync_ptsz(DevicePointer* address, std::size_t bytes, Stream stream) {
  return call(id::MemAllocAsync_ptsz, HERE, AsyncParameters{{address, bytes}, stream}, allocate_async);
}
FAKE Result cuMemAllocFromPoolAsync(DevicePointer* address, std::size_t bytes, MemoryPool pool, Stream stream) {
  return call(id::MemAllocFromPoolAsync, HERE, AllocateFromPoolParameters{address, bytes, pool, stream},
              allocate_from_pool);
}
FAKE Result cuMemAllocFromPoolAsync_ptsz(DevicePointer* address, std::size_t bytes, MemoryPool pool, Stream stream) {
  return call(id::MemAllocFromPoolAsync_ptsz, HERE, AllocateFromPoolParameters{address, bytes, pool, stream},
              allocate_from_pool);
}
FAKE Result cuMemFreeAsync(DevicePointer address, Stream stream) {
  return call(id::MemFreeAsync, HERE, FreeAsyncParameters{address, stream}, free_async);
}
FAKE Result cuMemFreeAsync_ptsz(DevicePointer address, Stream stream) {
  return call(id::MemFreeAsync_ptsz, HERE, FreeAsyncParameters{address, stream}, free_async);
}

// ---- graphs ----

FAKE Result cuGraphCreate(Graph* graph, unsigned) {
  if (!usable()) return kNotInitialized;
  *graph = new FakeGraph{};
  return kSuccess;
}

namespace {

Result add_allocation(Graph to, GraphAllocation* allocation) {
  auto* const graph = static_cast<FakeGraph*>(to);
  graph->device = allocation->pool.beginning.location.id;
  graph->bytes += allocation->bytes;
  return state->memory.reserve_addresses(allocation->bytes, &allocation->address);
}

}  // namespace

FAKE Result cuGraphAddMemAllocNode(GraphNode* node, Graph to, const GraphNode* before, std::size_t before_count,
                                   GraphAllocation* allocation) {
  return call(id::GraphAddMemAllocNode, HERE, AddNodeParameters{node, to, before, before_count, allocation},
              [](const AddNodeParameters& call) { return add_allocation(call.graph, call.allocation); });
}
FAKE Result cuGraphAddNode_v2(GraphNode* node, Graph to, const GraphNode* before, const void* edges,
                              std::size_t before_count, GraphNodeDescription* description) {
  return call(
      id::GraphAddNode_v2, HERE, AddAnyNodeParameters{node, to, before, edges, before_count, description},
      [](const AddAnyNodeParameters& call) { return add_allocation(call.graph, &call.description->allocation); });
}
FAKE Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  *exec = graph;
  return kSuccess;
}

namespace {

Result launch(const LaunchParameters& call) {
  const auto* const graph = static_cast<const FakeGraph*>(call.exec);
  return state->memory.launch(graph->device, graph->bytes);
}

}  // namespace

FAKE Result cuGraphUpload(GraphExec exec, Stream stream) {
  return call(id::GraphUpload, HERE, LaunchParameters{exec, stream}, launch);
}
FAKE Result cuGraphLaunch(GraphExec exec, Stream stream) {
  return call(id::GraphLaunch, HERE, LaunchParameters{exec, stream}, launch);
}
FAKE Result cuGraphLaunch_ptsz(GraphExec exec, Stream stream) {
  return call(id::GraphLaunch_ptsz, HERE, LaunchParameters{exec, stream}, launch);
}
FAKE Result cuDeviceGraphMemTrim(Device device) {
  if (!known(device)) return kInvalidDevice;
  return call(id::DeviceGraphMemTrim, HERE, DeviceParameters{device},
              [](const DeviceParameters& call) { return state->memory.trim_graphs(call.device); });
}
#ifndef FAKES_CUDA_OLD  // before CUDA 11.4
FAKE Result cuDeviceGetGraphMemAttribute(Device device, std::int32_t attribute, void* value) {
  if (!usable()) return kNotInitialized;
  if (!known(device)) return kInvalidDevice;
  if (attribute != kGraphReservedNow) return kInvalidValue;
  *static_cast<std::uint64_t*>(value) = state->memory.graph_reserved(device);
  return kSuccess;
}
#endif
