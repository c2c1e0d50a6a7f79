// Memory that a process may send as its ring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collect/recorder/lanes/lane_reader.h"
#include "ring_process.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

int memory_of(std::size_t size, unsigned flags, int seals) {
  const int fd = ::memfd_create("offer", flags);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
  }
  return fd;
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

std::string why_refused(int fd) {
  const auto mapped = SharedMemory::map(ScopedFd(fd));
  EXPECT_FALSE(is_open(fd));
  return mapped.ok() ? "" : mapped.error().message;
}

TEST(SharedMemoryMap, TakesASealedRing) {
  const RingProcess process;
  process.shared()->control.rank = 5;
  const int fd = process.duplicate();
  const auto mapped = SharedMemory::map(ScopedFd(fd));
  ASSERT_TRUE(mapped.ok());
  EXPECT_FALSE(is_open(fd)) << "the mapping is enough";
  EXPECT_EQ((*mapped)->get()->control.rank, 5);
  (*mapped)->get()->control.stop.store(1);
  EXPECT_EQ(process.shared()->control.stop.load(), 1U) << "it is the process's own memory";
}

TEST(SharedMemoryMap, RefusesUnsealedMemory) {
  const std::string refusal = "not a ring of this version";
  EXPECT_THAT(why_refused(memory_of(sizeof(ring::Shared), MFD_ALLOW_SEALING, 0)), HasSubstr(refusal));
  EXPECT_THAT(why_refused(memory_of(sizeof(ring::Shared), MFD_ALLOW_SEALING, F_SEAL_GROW)), HasSubstr(refusal));
  EXPECT_THAT(why_refused(memory_of(sizeof(ring::Shared), 0, 0)), HasSubstr(refusal));
  EXPECT_THAT(why_refused(::open("/dev/null", O_RDWR | O_CLOEXEC)), HasSubstr(refusal));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_THAT(why_refused(ends[0]), HasSubstr(refusal));
  ::close(ends[1]);
}

TEST(SharedMemoryMap, RefusesAnotherSize) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  for (const std::size_t size : {std::size_t{0}, sizeof(ring::Shared) - 4096, sizeof(ring::Shared) + 4096}) {
    EXPECT_THAT(why_refused(memory_of(size, MFD_ALLOW_SEALING, kSeals)), HasSubstr("not a ring of this version"));
  }
}

TEST(SharedMemoryMap, RefusesAnotherLayout) {
  const std::string refusal = "another version of tidemark";
  EXPECT_THAT(why_refused(memory_of(sizeof(ring::Shared), MFD_ALLOW_SEALING, F_SEAL_SHRINK)), HasSubstr(refusal));
  const RingProcess process;
  process.shared()->control.version = ring::kVersion + 1;
  EXPECT_THAT(why_refused(process.duplicate()), HasSubstr(refusal));
  process.shared()->control.version = ring::kVersion;
  process.shared()->control.magic ^= 1;
  EXPECT_THAT(why_refused(process.duplicate()), HasSubstr(refusal));
  process.shared()->control.magic = ring::kMagic;
  EXPECT_TRUE(SharedMemory::map(ScopedFd(process.duplicate())).ok());
}

}  // namespace
}  // namespace tidemark::testing
