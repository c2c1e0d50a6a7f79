// NCCL between the processes of this machine: communicators, and collectives that exchange the data of small buffers.
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/capture.h"
#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/gpu/visible_devices.h"
#include "phantom/libraries/nccl_operations.h"

namespace tidemark::phantom {
namespace {

struct NcclId {
  char text[128];
};

// Prefix of segment names. The rest is random: a process without the id cannot guess the name.
constexpr char kPrefix[] = "/tidemark-nccl-";

int make_id(NcclId* id) {
  std::array<unsigned char, 16> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return kNcclSystemError;
  std::memset(id, 0, sizeof *id);
  std::string text = kPrefix;
  for (const unsigned char byte : random) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  std::memcpy(id->text, text.data(), text.size());
  return kNcclSuccess;
}

// NCCL's kernels are loaded once for a process; each communicator has buffers of its own.
void take_memory_of(const NcclCommunicator& communicator) {
  static std::atomic<bool> loaded = false;
  const std::uint64_t kernels = profile().nccl_first - std::min(profile().nccl_first, profile().nccl_further);
  const int device = physical_device(communicator.device);
  take_driver_memory(device, profile().nccl_further + (loaded.exchange(true) ? 0 : kernels));
}

int join(NcclCommunicator** communicator, const std::string& name, int rank, int size, int device) {
  if (size <= 0 || rank < 0 || rank >= size || !name.starts_with(kPrefix)) return kNcclInvalidArgument;
  auto joined = std::make_unique<NcclCommunicator>();
  joined->transport = NcclTransport::join(name, rank, size);
  if (joined->transport == nullptr) {
    std::perror("tidemark: NCCL of the phantom GPU cannot make shared memory for its ranks");
    return kNcclSystemError;
  }
  joined->device = device;
  take_memory_of(*joined);
  count_communicator();
  *communicator = joined.get();
  return enqueue({.communicator = joined.release(), .kind = NcclKind::join});
}

int join(NcclCommunicator** communicator, const NcclId& id, int rank, int size, int device) {
  return join(communicator, std::string(id.text, strnlen(id.text, sizeof id.text)), rank, size, device);
}

struct Factors {
  std::mutex mutex;
  std::deque<double> factors;  // of the operations created by ncclRedOpCreatePreMulSum
};
constexpr int kFirstOwnReduction = 5;  // ncclNumOps

Factors& factors() {
  static auto* const kFactors = new Factors;
  return *kFactors;
}

Reduction reduction(int operation) {
  if (operation < kFirstOwnReduction) return {static_cast<Reduction::Kind>(operation), 1};
  Factors& all = factors();
  const std::lock_guard lock(all.mutex);
  const auto index = static_cast<std::size_t>(operation - kFirstOwnReduction);
  return {Reduction::sum, index < all.factors.size() ? all.factors[index] : 1};
}

int collective(NcclOperation operation, Handle stream) {
  captures().launch(stream);
  operation.how = reduction(operation.reduction);
  // The numbers of operations with a factor differ between ranks.
  operation.reduction = std::min(operation.reduction, kFirstOwnReduction);
  return enqueue(operation);
}

}  // namespace

TIDEMARK_PHANTOM_API int ncclGetVersion(int* version) {
  *version = profile().nccl_version;
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API const char* ncclGetErrorString(int result) {
  constexpr const char* kNcclTexts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
  return result >= 0 && result <= kNcclInProgress ? kNcclTexts[result] : "unknown result code";
}
TIDEMARK_PHANTOM_API const char* ncclGetLastError(const NcclCommunicator*) {
  return "";
}

TIDEMARK_PHANTOM_API int ncclGetUniqueId(NcclId* id) {
  return make_id(id);
}
TIDEMARK_PHANTOM_API int ncclCommInitRank(NcclCommunicator** communicator, int size, NcclId id, int rank) {
  return join(communicator, id, rank, size, current_device());
}
TIDEMARK_PHANTOM_API int ncclCommInitRankConfig(NcclCommunicator** communicator, int size, NcclId id, int rank,
                                                const void*) {
  return join(communicator, id, rank, size, current_device());
}
TIDEMARK_PHANTOM_API int ncclCommInitRankScalable(NcclCommunicator** communicator, int size, int rank, int,
                                                  const NcclId* ids, const void*) {
  return join(communicator, ids[0], rank, size, current_device());
}
TIDEMARK_PHANTOM_API int ncclCommInitAll(NcclCommunicator** communicators, int count, const int* devices) {
  NcclId id;
  if (const int result = make_id(&id); result != kNcclSuccess) return result;
  start_group();
  int result = kNcclSuccess;
  for (int rank = 0; rank < count && result == kNcclSuccess; ++rank) {
    result = join(&communicators[rank], id, rank, count, devices != nullptr ? devices[rank] : rank);
  }
  const int ended = end_group();
  return result != kNcclSuccess ? result : ended;
}

// The ranks of one color form a new communicator; ranks in it are ordered by key, and then by rank.
TIDEMARK_PHANTOM_API int ncclCommSplit(NcclCommunicator* parent, int color, int key, NcclCommunicator** communicator,
                                       const void*) {
  *communicator = nullptr;
  const auto size = static_cast<std::size_t>(parent->transport->size());
  const int rank = parent->transport->rank();
  const std::array<int, 2> own = {color, key};
  std::vector<std::array<int, 2>> all(size);
  constexpr int kNcclInt32 = 2;
  const int result = enqueue({.communicator = parent,
                              .kind = NcclKind::all_gather,
                              .from = own.data(),
                              .to = all.data(),
                              .count = own.size(),
                              .type = kNcclInt32});
  if (result != kNcclSuccess) return result;
  const std::uint64_t split = ++parent->splits;
  if (color < 0) return kNcclSuccess;  // NCCL_SPLIT_NOCOLOR
  int place = 0;
  int members = 0;
  for (std::size_t other = 0; other < size; ++other) {
    if (all[other][0] != color) continue;
    ++members;
    if (all[other][1] < key || (all[other][1] == key && static_cast<int>(other) < rank)) ++place;
  }
  const std::string name = parent->transport->name() + "." + std::to_string(split) + "-" + std::to_string(color);
  return join(communicator, name, place, members, parent->device);
}

// Called by all ranks that are not excluded.
TIDEMARK_PHANTOM_API int ncclCommShrink(NcclCommunicator* parent, const int* excluded, int count,
                                        NcclCommunicator** communicator, const void*, int) {
  const auto is_excluded = [=](int rank) { return std::find(excluded, excluded + count, rank) != excluded + count; };
  *communicator = nullptr;
  const int rank = parent->transport->rank();
  if (is_excluded(rank)) return kNcclInvalidArgument;
  int place = 0;
  int members = 0;
  for (int other = 0; other < parent->transport->size(); ++other) {
    if (is_excluded(other)) continue;
    ++members;
    if (other < rank) ++place;
  }
  const std::string name = parent->transport->name() + "." + std::to_string(++parent->splits) + "-shrunk";
  return join(communicator, name, place, members, parent->device);
}

TIDEMARK_PHANTOM_API int ncclCommFinalize(NcclCommunicator*) {
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommDestroy(NcclCommunicator* communicator) {
  give_back_memory(physical_device(communicator->device), profile().nccl_further);
  delete communicator;
  return kNcclSuccess;
}
// Another thread may be waiting in a call, so the communicator is kept.
TIDEMARK_PHANTOM_API int ncclCommAbort(NcclCommunicator* communicator) {
  communicator->aborted.store(true);
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommRevoke(NcclCommunicator* communicator, int) {
  return ncclCommAbort(communicator);
}
TIDEMARK_PHANTOM_API int ncclCommGetAsyncError(const NcclCommunicator*, int* result) {
  *result = kNcclSuccess;
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommCount(const NcclCommunicator* communicator, int* count) {
  *count = communicator->transport->size();
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommUserRank(const NcclCommunicator* communicator, int* rank) {
  *rank = communicator->transport->rank();
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommCuDevice(const NcclCommunicator* communicator, int* device) {
  *device = communicator->device;
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommRegister(NcclCommunicator*, void*, std::size_t, Handle* handle) {
  *handle = new_handle();
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommDeregister(NcclCommunicator*, Handle) {
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommWindowRegister(NcclCommunicator*, void*, std::size_t, Handle* window, int) {
  *window = new_handle();
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclCommWindowDeregister(NcclCommunicator*, Handle) {
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclMemAlloc(void** pointer, std::size_t bytes) {
  *pointer = allocate_device(current_device(), bytes, TIDEMARK_PHANTOM_CALLER);
  return *pointer != nullptr ? kNcclSuccess : 1;  // ncclUnhandledCudaError
}
TIDEMARK_PHANTOM_API int ncclMemFree(void* pointer) {
  return pointer == nullptr || free_device(pointer) ? kNcclSuccess : kNcclInvalidArgument;
}

TIDEMARK_PHANTOM_API int ncclGroupStart() {
  start_group();
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclGroupEnd() {
  return end_group();
}

TIDEMARK_PHANTOM_API int ncclRedOpCreatePreMulSum(int* operation, const void* factor, int type, int,
                                                  NcclCommunicator*) {
  Factors& all = factors();
  const std::lock_guard lock(all.mutex);
  all.factors.push_back(element(factor, type));
  *operation = kFirstOwnReduction + static_cast<int>(all.factors.size()) - 1;
  return kNcclSuccess;
}
TIDEMARK_PHANTOM_API int ncclRedOpDestroy(int, NcclCommunicator*) {
  return kNcclSuccess;
}

TIDEMARK_PHANTOM_API int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                                       NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::all_reduce, from, to, count, type, operation}, stream);
}
TIDEMARK_PHANTOM_API int ncclReduce(const void* from, void* to, std::size_t count, int type, int operation, int root,
                                    NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::reduce, from, to, count, type, operation, {}, root}, stream);
}
TIDEMARK_PHANTOM_API int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                                       NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::broadcast, from, to, count, type, 0, {}, root}, stream);
}
TIDEMARK_PHANTOM_API int ncclBcast(void* buffer, std::size_t count, int type, int root, NcclCommunicator* communicator,
                                   Handle stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
TIDEMARK_PHANTOM_API int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                       NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::all_gather, from, to, count, type}, stream);
}
TIDEMARK_PHANTOM_API int ncclGather(const void* from, void* to, std::size_t count, int type, int root,
                                    NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::gather, from, to, count, type, 0, {}, root}, stream);
}
TIDEMARK_PHANTOM_API int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation,
                                           NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::reduce_scatter, from, to, count, type, operation}, stream);
}
TIDEMARK_PHANTOM_API int ncclAlltoAll(const void* from, void* to, std::size_t count, int type,
                                      NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::all_to_all, from, to, count, type}, stream);
}
TIDEMARK_PHANTOM_API int ncclSend(const void* from, std::size_t count, int type, int peer,
                                  NcclCommunicator* communicator, Handle stream) {
  return collective({communicator, NcclKind::send, from, nullptr, count, type, 0, {}, peer}, stream);
}
TIDEMARK_PHANTOM_API int ncclRecv(void* to, std::size_t count, int type, int peer, NcclCommunicator* communicator,
                                  Handle stream) {
  return collective({communicator, NcclKind::receive, nullptr, to, count, type, 0, {}, peer}, stream);
}

}  // namespace tidemark::phantom
