#include "phantom/libraries/nccl_transport.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace tidemark::phantom {
namespace {

// A rank may be this many collectives, or messages to one rank, ahead of the others.
constexpr std::size_t kAhead = 4;

void fill_parcel(NcclParcel& parcel, const NcclCall& call, const void* data, std::size_t bytes) {
  parcel.call = call;
  parcel.bytes = bytes <= kKeptCopyBytes ? bytes : 0;
  if (parcel.bytes != 0) std::memcpy(parcel.data, data, parcel.bytes);
}

}  // namespace

// The layout of the segment. All zeros, as in a new file, is the state before any rank has joined.
struct NcclTransport::Segment {
  std::atomic<std::uint32_t> joined;
};

struct NcclTransport::Rank {
  std::atomic<std::int32_t> process;
  std::atomic<std::uint64_t> posted;    // number of the newest collective that it has posted
  std::atomic<std::uint64_t> finished;  // number of the newest collective whose parts it has read
  NcclParcel parts[kAhead];
};

struct NcclTransport::Mailbox {
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint64_t> taken;
  NcclParcel messages[kAhead];
};

std::unique_ptr<NcclTransport> NcclTransport::join(const std::string& name, int rank, int size) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t bytes = kGranularity + ranks * sizeof(Rank) + ranks * ranks * sizeof(Mailbox);
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return nullptr;
  struct stat status {};
  void* start = MAP_FAILED;
  // A file of another user, who could read the exchanged data, is not used.
  if (fstat(file, &status) == 0 && (status.st_uid != geteuid() || (status.st_mode & 077) != 0)) {
    errno = EPERM;
  } else if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  const int error = errno;
  close(file);
  errno = error;
  if (start == MAP_FAILED) return nullptr;
  std::unique_ptr<NcclTransport> transport(new NcclTransport(name, rank, size, start, bytes));
  transport->at(rank).process.store(getpid(), std::memory_order_relaxed);
  auto& joined = reinterpret_cast<Segment*>(start)->joined;
  if (joined.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size)) shm_unlink(name.c_str());
  return transport;
}

NcclTransport::NcclTransport(std::string name, int rank, int size, void* start, std::size_t bytes)
    : name_(std::move(name)), rank_(rank), size_(size), start_(static_cast<char*>(start)), bytes_(bytes) {}

NcclTransport::~NcclTransport() {
  if (!complete()) shm_unlink(name_.c_str());
  munmap(start_, bytes_);
}

NcclTransport::Rank& NcclTransport::at(int rank) const {
  return reinterpret_cast<Rank*>(start_ + kGranularity)[rank];
}

NcclTransport::Mailbox& NcclTransport::mailbox(int from, int to) const {
  return reinterpret_cast<Mailbox*>(&at(size_))[from * size_ + to];
}

bool NcclTransport::complete() const {
  return reinterpret_cast<const Segment*>(start_)->joined.load(std::memory_order_acquire) >=
         static_cast<std::uint32_t>(size_);
}

bool NcclTransport::post(std::uint64_t number, const NcclCall& call, const void* data, std::size_t bytes) {
  if (number > kAhead)
    for (int rank = 0; rank < size_; ++rank)
      if (at(rank).finished.load(std::memory_order_acquire) < number - kAhead) return false;
  Rank& own = at(rank_);
  fill_parcel(own.parts[number % kAhead], call, data, bytes);
  own.posted.store(number, std::memory_order_release);
  return true;
}

const NcclParcel* NcclTransport::part(std::uint64_t number, int rank) const {
  const Rank& other = at(rank);
  return other.posted.load(std::memory_order_acquire) >= number ? &other.parts[number % kAhead] : nullptr;
}

void NcclTransport::finish(std::uint64_t number) {
  at(rank_).finished.store(number, std::memory_order_release);
}

bool NcclTransport::send(int to, const NcclCall& call, const void* data, std::size_t bytes) {
  Mailbox& box = mailbox(rank_, to);
  const std::uint64_t sent = box.sent.load(std::memory_order_relaxed);
  if (sent - box.taken.load(std::memory_order_acquire) == kAhead) return false;
  fill_parcel(box.messages[sent % kAhead], call, data, bytes);
  box.sent.store(sent + 1, std::memory_order_release);
  return true;
}

const NcclParcel* NcclTransport::message(int from) const {
  const Mailbox& box = mailbox(from, rank_);
  const std::uint64_t taken = box.taken.load(std::memory_order_relaxed);
  return box.sent.load(std::memory_order_acquire) != taken ? &box.messages[taken % kAhead] : nullptr;
}

void NcclTransport::take(int from) {
  mailbox(from, rank_).taken.fetch_add(1, std::memory_order_release);
}

int NcclTransport::ended_rank() const {
  for (int rank = 0; rank < size_; ++rank) {
    const std::int32_t process = at(rank).process.load(std::memory_order_relaxed);
    if (process != 0 && kill(process, 0) != 0 && errno == ESRCH) return rank;
  }
  return -1;
}

}  // namespace tidemark::phantom
