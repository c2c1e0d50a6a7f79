// Memory shared by the recorded process and the recorder: one memfd for each process, created by the process, drained
// by the recorder. It outlives the process, so a process killed at any instant leaves everything it committed.
//
//   +-----------+------------------+-------------------+----------------------------+
//   | Control   | free bitmap      | Lane[kLaneCount]  | Chunk[kChunkCount]         |
//   +-----------+------------------+-------------------+----------------------------+
//
// A *lane* is the ring of one thread at a time: a chain of fixed-size chunks. The thread appends records to the last
// chunk and links a new one when it is full; the recorder follows the chain, and gives a chunk back to the bitmap once
// it has read it and a later one is linked. So a ring grows by chunks, up to what the pool holds for all threads
// together; beyond that, records are dropped and counted. Each word has one writer at a time:
//
//   word              written by  meaning
//   Lane::owner       both        0 free, else the kernel's thread id; claimed and released by threads
//   Lane::busy        thread      1 while it is between taking a time and committing the record
//   Lane::call_since  thread      ticks at which a call was made that may release memory of the driver; 0 = none
//   Lane::head        thread      1 + number of the lane's first chunk, set once
//   Lane::connection  thread      number of the connection for which the lane was claimed; 0 once that has ended;
//                     recorder    sets kQuestionWaits in it, which the thread clears
//   Chunk::next       thread      1 + number of the next chunk; recorder clears it when recycling
//   Chunk::committed  thread      bytes of whole records; recorder clears it when recycling
//   bitmap            both        1 = free; threads clear bits, the recorder sets them
//   Control::stop     recorder    non-zero: stop recording
//   Control::ended    process     non-zero: the process goes on, and writes nothing here any more
//
// The recorder trusts nothing it reads here: the process may have overwritten it.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::ring {

inline constexpr std::uint64_t kMagic = 0x31474E4952454454;  // "TDERING1"
inline constexpr std::uint32_t kVersion = 1;

inline constexpr std::size_t kLaneCount = 512;
inline constexpr std::size_t kChunkCount = 1024;
inline constexpr std::size_t kChunkBytes = std::size_t{16} * 1024;
inline constexpr std::size_t kBitmapWords = kChunkCount / 64;

enum class Clock : std::uint32_t {
  monotonic = 0,  ///< CLOCK_MONOTONIC in ns
  tsc = 1,        ///< the x86 time-stamp counter, if the kernel itself trusts it
};

inline std::uint64_t monotonic_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// The time of an event, in ticks of the clock that the recorder chose.
inline std::uint64_t ticks(Clock clock) noexcept {
#if defined(__x86_64__)
  if (clock == Clock::tsc) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  (void)clock;
  return monotonic_ns();
}

struct Control {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t pid;  ///< in the process's own namespace
  Clock clock;
  std::uint32_t parent_pid;
  std::uint64_t start_ticks;  ///< when the mapping was made
  std::int32_t rank;          ///< set by the launcher (ranks.h), read at the first event; -1 = none
  std::int32_t local_rank;
  std::int32_t world_size;
  std::atomic<std::uint32_t> ended;
  std::atomic<std::uint32_t> stop;
  std::atomic<std::uint32_t> thread_limit_drops;  ///< events of threads without a lane
  std::atomic<std::uint32_t> barred_drops;        ///< events of threads stopped by a limit or a seccomp filter
};

/// Flag in Lane::connection: a request (kQuestionStem) waits for the process.
inline constexpr std::uint32_t kQuestionWaits = 0x80000000;

struct alignas(64) Lane {
  std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> busy;
  std::atomic<std::uint32_t> head;
  std::atomic<std::uint32_t> connection;
  std::atomic<std::uint64_t> dropped;    ///< events lost because no chunk was free
  std::atomic<std::uint64_t> reentrant;  ///< events lost because a signal handler interrupted the hook
  std::atomic<std::uint64_t> truncated;  ///< stacks cut at the depth limit
  std::atomic<std::uint64_t> call_since;
};

struct alignas(64) Chunk {
  static constexpr std::size_t kPayloadBytes = kChunkBytes - 16;

  std::atomic<std::uint32_t> committed;
  std::atomic<std::uint32_t> next;
  std::uint64_t unused;
  std::uint64_t payload[kPayloadBytes / 8];
};
static_assert(sizeof(Chunk) == kChunkBytes);

struct Shared {
  Control control;
  alignas(64) std::atomic<std::uint64_t> free_chunks[kBitmapWords];
  Lane lanes[kLaneCount];
  alignas(4096) Chunk chunks[kChunkCount];
};

// ---- records ----
//
// Every record is a multiple of 8 bytes:
//
//    0       1        2        3       4               8
//   +-------+--------+--------+-------+---------------+---------------------------
//   | kind  | device | device | words | stack (u32)   | fields of the kind ...
//   |       | type   | index  |       |               |
//   +-------+--------+--------+-------+---------------+---------------------------
//   words = length of the whole record / 8
//
//   allocate, out_of_memory  ticks, address (0 for out_of_memory), size [, total allocated, total reserved]
//   free                     ticks, address                             [, total allocated, total reserved]
//   pause, resume            ticks
//   blob                     up to kBlobBytes of a definition; `device type` holds BlobFlags, `stack` its length here
//   reset                    forget the definitions of this lane (stacks, code objects, modules, autograd nodes)
//   driver                   ticks, numbers of the DriverCall, which is in `device type`
//   allocator                the same, for a call that PyTorch's caching allocator made for its segments: allocate,
//                            free, create, map or unmap
//   autograd                 the thread's position from here on, initially 0, 0 and 0: the number of the next node that
//                            it makes [, the number of the evaluated node on the thread that made it]; `stack` is
//                            1 + number of the evaluated node's autograd_node, 0 for none

enum class RecordKind : std::uint8_t {
  allocate = 1,
  free = 2,
  out_of_memory = 3,
  pause = 4,
  resume = 5,
  blob = 6,
  reset = 7,
  driver = 8,
  autograd = 9,
  allocator = 10,
};

// A call of the CUDA driver that took or released memory. The process records the call; its effect on the memory (a
// handle is free once it is released and unmapped, a pool shrinks by itself) is computed by the recorder, which has the
// calls of all threads in order. `device index` is the device's, -1 if there is none.
//
// Calls are recorded after they have succeeded. Another thread may get the released memory before the call returns, so
// the time of such a call is when it was made, and until it has returned Lane::call_since keeps the recorder from
// writing later events.
enum class DriverCall : std::uint8_t {
  allocate = 1,          ///< address, bytes: on the device
  allocate_managed = 2,  ///< address, bytes
  allocate_host = 3,     ///< address, bytes: page-locked
  free = 4,              ///< address of one of these, 1 if it may be of a pool (else 0)
  create = 5,            ///< handle, bytes: physical memory, on the host if the device is -1
  adopt = 6,             ///< handle: one more reference, or memory of another process
  release = 7,           ///< handle: one reference less
  map = 8,               ///< address, bytes, handle
  unmap = 9,             ///< address, bytes
  pool = 10,             ///< pool, bytes that it has taken from the device (-1: the host) by now
  reset_device = 11,     ///< all memory of the process on the device is released
  slow = 12,             ///< ticks at which a slow call was made; it has returned now
};

struct RecordHeader {
  RecordKind kind;
  std::int8_t device_type;
  std::int8_t device_index;
  std::uint8_t words;
  std::uint32_t stack;
};
static_assert(sizeof(RecordHeader) == 8);

inline constexpr std::uint32_t kNoStack = 0xFFFFFFFF;
inline constexpr std::size_t kBlobBytes = 1024;
inline constexpr std::uint8_t kBlobFirst = 1;  ///< starts a definition (and drops an unfinished one)
inline constexpr std::uint8_t kBlobLast = 2;   ///< ends it

// clang-format off
// A definition, once its blobs are put together, is a DefinitionKind (u32) followed by fields, without padding, in the
// machine's byte order; "text" is a u32 length and that many bytes.
//
//   thread   u32 tid, text name
//   process  i32 rank, i32 local rank, i32 world size, text Python version, text path of the library that reports events
//   code     u64 address, u32 Python version (0x030B), u32 first line, u32 code offset,
//            then file and function, each {u8 kind (bytes per code point), text}, then text line table
//   module   u64 start, u64 end, u64 load address, text path, text build-id (raw bytes)
//   stack    u32 id, u32 number of Python frames, u32 number of native frames,
//            u32 number of Python frames that call a torch.nn.Module; if it is not 0, u64 generation of the modules,
//            and {u32 number of the frame, u64 address of the module} for each,
//            then {u64 code, u32 instruction} for each Python frame and u64 return address for each native one,
//            innermost first
//   loss     u32 QualityId, text
//   lines    of a generated file: its path {u8 kind, text}, then for each place where other lines of the program begin:
//            u32 line, u32 number of their stack trace, from 1, 0 for none; a number used for the first time is
//            followed by the trace, as Python prints it: {u8 kind, text}
//   mark     u32 MarkKind, u64 ticks, text name of at most kMarkNameBytes
//   model    u64 generation of the modules, u64 ticks, then entries to the end, each a u8 ModelEntry and
//            module: u64 address, u64 address of the outermost module, text path relative to that, text class
//            tensor: u8 ModelTensor::Role, i8 device type, i8 device index, u8 1 if it requires a gradient, u64 address of
//              its storage, u64 bytes of that, u64 bytes of the tensor, u64 address of its module (0: unknown), text
//              name, text key of the optimizer's state, text dtype, u8 number of dimensions, u64 for each
//   module_death  u64 address, u64 the generation of modules that begins with it: they are numbered from 1, and each
//            comes before all other records of its generation
//   autograd_node    u32 number, u64 autograd's number of the thread that made the nodes,
//                    u32 1 if the class is a Python class, text class: its name, at most kNodeNameBytes, mangled if C++
//   autograd_thread  u64 autograd's number of the thread of this lane
// clang-format on
enum class DefinitionKind : std::uint32_t {
  thread = 1,
  process = 2,
  code = 3,
  module = 4,
  stack = 5,
  loss = 6,
  mark = 7,
  model = 8,
  module_death = 9,
  autograd_node = 10,
  autograd_thread = 11,
  lines = 12,
};
enum class ModelEntry : std::uint8_t { module = 1, tensor = 2 };
enum class MarkKind : std::uint32_t { point = 0, range_begin = 1, range_end = 2 };

inline constexpr std::size_t kMarkNameBytes = 256;  ///< longer names are cut
inline constexpr std::size_t kNodeNameBytes = 1024;

/// CPython versions (0x030B is 3.11) with supported stacks, in ordinary 64-bit builds.
inline constexpr std::uint16_t kWalkedPythons[] = {0x0309, 0x030A, 0x030B, 0x030C, 0x030D, 0x030E};

inline constexpr std::size_t kMaxFrames = 256;  ///< of each sort; deeper stacks lose their outermost frames

// ---- environment ----
inline constexpr char kSocketVariable[] = "TIDEMARK_SOCKET";        ///< path of the recorder's socket
inline constexpr char kStacksVariable[] = "TIDEMARK_STACKS";        ///< none, python, native or both
inline constexpr char kAttributeVariable[] = "TIDEMARK_ATTRIBUTE";  ///< "off": record nothing but events and stacks
inline constexpr char kPausedVariable[] = "TIDEMARK_PAUSED";        ///< set: the program calls tidemark_resume() first
inline constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";  ///< a library that the CUDA driver loads
inline constexpr char kFiltersVariable[] = "TIDEMARK_FILTERS";  ///< number of seccomp filters at the start of programs,
                                                                ///< if any
inline constexpr char kClockVariable[] = "TIDEMARK_CLOCK";      ///< "tsc" if the recorder found it trustworthy

/// First message on the socket (SOCK_SEQPACKET); the memfd comes with it as SCM_RIGHTS.
struct Hello {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved;
};

// A monitor's request to a recorded process: files in the recorder's folder, which only the user can access.
//
//   objects.PID.question  "first" or "again": the storages of the process, or the new ones since and their owners.
//                         The process removes it when it begins to answer.
//   objects.PID.answer    JSON, read by monitor/object_question.h
//
// While there is a request, the recorder sets a flag in the lanes of the process's threads, which so need not look for
// files.
inline constexpr char kQuestionStem[] = "objects.";  ///< then the process's id
inline constexpr char kQuestionEnd[] = ".question";
inline constexpr char kAnswerEnd[] = ".answer";

}  // namespace tidemark::ring
