// The recorded process's side of a ring, implemented by a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "collect/process/lane_writer.h"
#include "collect/ring/layout.h"
#include "trace/event.h"

namespace tidemark::testing {

/// The memory, made like in collect/process/connection.cpp.
class RingProcess {
 public:
  explicit RingProcess(ring::Clock clock = ring::Clock::monotonic,
                       std::uint64_t start_ticks = ring::monotonic_ns() - 1'000'000'000U) {
    fd_ = ::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (::ftruncate(fd_, sizeof(ring::Shared)) != 0 ||
        ::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      std::abort();
    }
    void* mapped = ::mmap(nullptr, sizeof(ring::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) std::abort();
    shared_ = static_cast<ring::Shared*>(mapped);
    ring::Control& control = shared_->control;
    control.magic = ring::kMagic;
    control.version = ring::kVersion;
    control.pid = static_cast<std::uint32_t>(::getpid());
    control.parent_pid = static_cast<std::uint32_t>(::getppid());
    control.clock = clock;
    control.start_ticks = start_ticks;
    control.rank = control.local_rank = control.world_size = -1;
    for (auto& word : shared_->free_chunks) word.store(~std::uint64_t{0});
  }
  ~RingProcess() {
    ::munmap(shared_, sizeof(ring::Shared));
    ::close(fd_);
  }
  RingProcess(const RingProcess&) = delete;
  RingProcess& operator=(const RingProcess&) = delete;

  [[nodiscard]] ring::Shared* shared() const { return shared_; }
  [[nodiscard]] std::uint64_t start_ticks() const { return shared_->control.start_ticks; }
  [[nodiscard]] int fd() const { return fd_; }
  /// For a receiver that closes it.
  [[nodiscard]] int duplicate() const { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 0); }

 private:
  int fd_ = -1;
  ring::Shared* shared_ = nullptr;
};

/// One thread of it. Times are in ticks after the process's start.
class RingThread {
 public:
  RingThread(const RingProcess& process, std::uint32_t lane, std::uint32_t tid)
      : start_(process.start_ticks()), lane_(&process.shared()->lanes[lane]) {
    lane_->owner.store(tid);
    writer.open(process.shared(), lane_);
    process::DefinitionWriter definition(&writer, ring::DefinitionKind::thread);
    definition.u32(tid);
    definition.text(("thread " + std::to_string(tid)).c_str());
    (void)definition.finish();
  }

  bool allocate(std::uint64_t time, std::uint64_t address, std::uint64_t size, Device device = {},
                std::uint32_t stack = ring::kNoStack) {
    return put(ring::RecordKind::allocate, device, stack, {start_ + time, address, size});
  }
  bool allocate(std::uint64_t time, std::uint64_t address, std::uint64_t size, Device device, std::uint64_t allocated,
                std::uint64_t reserved) {
    return put(ring::RecordKind::allocate, device, ring::kNoStack, {start_ + time, address, size, allocated, reserved});
  }
  bool free(std::uint64_t time, std::uint64_t address, Device device = {}) {
    return put(ring::RecordKind::free, device, ring::kNoStack, {start_ + time, address});
  }
  /// Any record.
  bool put(ring::RecordKind kind, Device device, std::uint32_t stack, std::initializer_list<std::uint64_t> fields) {
    const std::size_t words = 1 + fields.size();
    std::uint64_t* record = writer.reserve(words);
    if (record == nullptr) return false;
    const ring::RecordHeader header{kind, static_cast<std::int8_t>(device.type), device.index,
                                    static_cast<std::uint8_t>(words), stack};
    std::memcpy(record, &header, sizeof(header));
    std::copy(fields.begin(), fields.end(), record + 1);
    writer.commit(words);
    return true;
  }

  [[nodiscard]] ring::Lane& lane() const { return *lane_; }

  process::LaneWriter writer;

 private:
  std::uint64_t start_;
  ring::Lane* lane_;
};

}  // namespace tidemark::testing
