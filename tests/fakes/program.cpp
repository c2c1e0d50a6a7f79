// A program that uses the fakes like a training program uses PyTorch.   program SCENE LIBC10_CUDA [EXTENSION]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "autograd_program.h"
#include "library.h"
#include "single_step.h"

namespace {

struct Where {
  int type;
  int index;
};

// Two GPUs, a negative index, another back-end (privateuse1), and an Intel GPU.
constexpr Where kDevices[] = {{1, 0}, {1, 1}, {-3, -1}, {20, 0}, {12, 2}};

struct Block {
  Where where;
  void* address;
};

/// Random allocations and frees on all devices and the CPU; all but a few blocks are freed in the end.
void work(const Torch& torch, unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  std::vector<void*> host;
  for (int step = 0; step < steps; ++step) {
    const auto roll = random() % 100;
    const Where where = kDevices[random() % std::size(kDevices)];
    if (roll < 40 || blocks.empty()) {
      blocks.push_back({where, torch.allocate(where.type, where.index, random() % (1U << (random() % 24)))});
    } else if (roll < 75) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      torch.free(blocks.back().where.type, blocks.back().where.index, blocks.back().address);
      blocks.pop_back();
    } else if (roll < 85) {
      host.push_back(torch.cpu_allocate(random() % 5 == 0 ? 0 : random() % 4000));
    } else if (roll < 95) {
      torch.cpu_free(host.empty() ? nullptr : host.back());
      if (!host.empty()) host.pop_back();
    } else if (roll < 98) {
      torch.fail(where.type, where.index, std::uint64_t{1} << 40);
    } else {
      torch.cpu_fail(std::size_t{1} << 41);
    }
  }
  while (blocks.size() > 5) {
    torch.free(blocks.back().where.type, blocks.back().where.index, blocks.back().address);
    blocks.pop_back();
  }
}

void print_counters(const Torch& torch) {
  for (const Where where : kDevices) {
    const FakesCounters counters = torch.counters(where.type, where.index);
    std::printf("%d %d %lu %lu %lu %lu %lu\n", where.type, where.index, counters.allocated, counters.peak_allocated,
                counters.peak_reserved, counters.allocations, counters.frees);
  }
}

int threads(const Torch& torch) {
  work(torch, 1, 2000);
  std::vector<std::thread> workers;
  for (unsigned seed = 2; seed < 5; ++seed) workers.emplace_back([&torch, seed] { work(torch, seed, 2000); });
  for (std::thread& worker : workers) worker.join();
  for (const Where where : kDevices) torch.empty_cache(where.type, where.index);
  torch.profile(true);
  work(torch, 9, 500);
  print_counters(torch);
  return 0;
}

int killed(const Torch& torch) {
  work(torch, 1, 5000);
  return ::raise(SIGKILL);
}

int forks(const Torch& torch) {
  work(torch, 1, 500);
  const pid_t child = ::fork();
  if (child == 0) {
    work(torch, 2, 500);
    ::_exit(0);
  }
  work(torch, 3, 500);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// One thread after the other: a lane's next owner.
int succession(const Torch& torch) {
  for (unsigned seed = 0; seed < 700; ++seed) std::thread([&torch, seed] { work(torch, seed, 10); }).join();
  return 0;
}

/// More threads at once than there are lanes.
int crowd(const Torch& torch) {
  constexpr int kThreads = 600;
  std::barrier everybody(kThreads);
  std::vector<std::thread> crowd;
  for (int number = 0; number < kThreads; ++number) {
    crowd.emplace_back([&] {
      void* block = torch.allocate(1, 0, 1000);
      everybody.arrive_and_wait();
      torch.free(1, 0, block);
    });
  }
  for (std::thread& thread : crowd) thread.join();
  return 0;
}

/// The collector is loaded after the libraries, while they are in use.
int late(const Torch& torch, const char* extension_path) {
  void* early = torch.allocate(1, 0, 3000);
  void* early_host = torch.cpu_allocate(100);
  work(torch, 1, 200);
  const Library collector(std::getenv("TIDEMARK_LIBRARY"));
  auto* attach = collector.function<std::size_t()>("tidemark_attach");
  const std::size_t slots = attach();
  torch.mark();
  work(torch, 2, 500);
  torch.free(1, 0, early);
  torch.cpu_free(early_host);
  std::thread([&torch] { work(torch, 3, 500); }).join();
  const Library extension(extension_path);
  const std::size_t more = attach();
  extension.function<void(std::uint64_t, std::int64_t)>("fakes_extension_report")(0xABC000, 4096);
  work(torch, 4, 100);
  std::printf("%zu %zu\n", slots, more);
  return 0;
}

bool loaded(const char* path) {
  return ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

/// Reporting libraries are unloaded and reloaded; the first to report is the first to be unloaded.
int unloads(const char* torch_path, const char* extension_path) {
  std::uint64_t address = 0x1000;
  for (int round = 0; round < 3; ++round) {
    Library extension(extension_path);
    auto* report = extension.function<void(std::uint64_t, std::int64_t)>("fakes_extension_report");
    for (int count = 0; count < 100; ++count) report(address += 512, 512);
    extension.close();
    if (loaded(extension_path)) return 3;
    Library library(torch_path);
    const Torch torch(library);
    work(torch, 1, 200);
    library.close();
    if (loaded(torch_path)) return 4;
  }
  return 0;
}

const Torch* interrupted = nullptr;
std::atomic<std::uint64_t> next_address{0x10'0000};
int steps_to_skip = 0;

void allocate_in_handler() {
  if (steps_to_skip > 0) {
    --steps_to_skip;
  } else {
    interrupted->report(1, 3, next_address.fetch_add(512), 512);
  }
}

/// Makes an event with a signal between every two of its instructions, from one of the first on: the handler allocates.
void step(const Torch& torch, int skipped) {
  ::alarm(10);  // one that waits for the interrupted code would wait forever
  steps_to_skip = skipped;
  single_step([&torch] { torch.report(1, 4, next_address.fetch_add(512), 1024); }, allocate_in_handler);
  ::alarm(0);
}

/// An ordinary event, the first of a thread, and the first of a forked child are interrupted. The handler's event may
/// be the first too: then a handler starts what a later one interrupts.
int interruptions(const Torch& torch) {
  interrupted = &torch;
  torch.report(1, 4, 0x1000, 512);  // the loader must not be interrupted: it holds locks
  step(torch, 0);
  for (int skipped = 0; skipped < 400; skipped += 20) std::thread(step, std::cref(torch), skipped).join();
  int failed = 0;
  for (int skipped = 0; skipped < 4000; skipped = skipped * 2 + 30) {
    const pid_t child = ::fork();
    if (child == 0) {
      step(torch, skipped);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  return failed;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::string scene = arguments[1];
  const char* extension = count > 3 ? arguments[3] : "";
  if (scene == "unloads") return unloads(arguments[2], extension);
  const Torch torch{Library(arguments[2])};
  if (scene == "threads") return threads(torch);
  if (scene == "killed") return killed(torch);
  if (scene == "forks") return forks(torch);
  if (scene == "succession") return succession(torch);
  if (scene == "crowd") return crowd(torch);
  if (scene == "late") return late(torch, extension);
  if (scene == "autograd") return autograd(torch, arguments[2]);
  if (scene == "interruptions") return interruptions(torch);
  return 2;
}
