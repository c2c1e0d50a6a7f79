#include "autograd_program.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "torch_cpu.h"

namespace {

constexpr const char* kClasses[kFakesKinds] = {
    "torch::autograd::generated::AddmmBackward0",
    "torch::autograd::AccumulateGrad",
    "torch::autograd::CppNode<Twice>",
    "(anonymous namespace)::PrivateBackward",
    "ScaleBackward",
    "ShiftBackward",
    "-",
};

struct Engine {
  explicit Engine(const Library& library)
      : make(library.function<decltype(fakes_make_node)>("fakes_make_node")),
        evaluate(library.function<decltype(fakes_evaluate)>("fakes_evaluate")),
        next(library.function<decltype(fakes_next_number)>("fakes_next_number")) {}

  decltype(fakes_make_node)* make;
  decltype(fakes_evaluate)* evaluate;
  decltype(fakes_next_number)* next;
};

struct Made {
  void* node;
  int kind;
  std::uint64_t number;
  std::string thread;
};

class Thread {
 public:
  Thread(const Torch& torch, const Engine& engine, unsigned seed) : torch_(torch), engine_(engine), random_(seed) {}

  void allocate() {
    static std::atomic<std::size_t> sizes{1};
    const std::size_t size = sizes.fetch_add(1);
    const bool none = evaluated_ == nullptr || evaluated_->kind == kFakesStrange;
    const std::string node = none ? "- - -"
                                  : std::string(kClasses[evaluated_->kind]) + " " + std::to_string(evaluated_->number) +
                                        " " + evaluated_->thread;
    std::printf("%zu %lu %s\n", size, engine_.next(), node.c_str());
    torch_.cpu_free(torch_.cpu_allocate(size));
  }

  Made make(int kind, std::uint64_t thread = 0) {
    Made made{nullptr, kind, 0, thread == 0 ? std::to_string(::syscall(SYS_gettid)) : "-"};
    made.node = engine_.make(kind, thread, &made.number);
    return made;
  }

  /// Evaluates a node with a random action, which may evaluate other nodes.
  void evaluate(const Made& made, int depth) {
    struct Frame {
      Thread* thread;
      int depth;
    } frame{this, depth};
    const Inside inside(this, made);
    engine_.evaluate(
        made.node,
        [](void* argument) {
          const auto* called = static_cast<const Frame*>(argument);
          called->thread->work(called->depth + 1);
        },
        &frame);
  }

  /// Some allocations and some nodes. Exceptions from inside are caught here, or passed on.
  void work(int depth) {
    for (unsigned step = 0; step < 4; ++step) {
      allocate();
      if (depth < 5 && chance(45)) {
        const Made made = make(static_cast<int>(random_() % kFakesKinds));
        try {
          evaluate(made, depth);
        } catch (const std::runtime_error&) {
          if (depth > 0 && chance(50)) throw;
        }
        allocate();
      }
      if (depth > 0 && chance(10)) throw std::runtime_error("a node fails");
    }
  }

  /// Ends the thread inside of a node.
  void leave() {
    Made made = make(kFakesAddmm);
    engine_.evaluate(
        made.node, [](void*) { ::pthread_exit(nullptr); }, nullptr);
  }

 private:
  /// State that holds while a node is evaluated.
  class Inside {
   public:
    Inside(Thread* thread, const Made& made) : thread_(thread), before_(thread->evaluated_) {
      thread->evaluated_ = &made;
    }
    ~Inside() { thread_->evaluated_ = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Thread* thread_;
    const Made* before_;
  };

  bool chance(unsigned percent) { return random_() % 100 < percent; }

  const Torch& torch_;
  const Engine& engine_;
  std::mt19937 random_;
  const Made* evaluated_ = nullptr;
};

}  // namespace

int autograd(const Torch& torch, const char* torch_path) {
  std::string path = torch_path;
  path.replace(path.rfind('/') + 1, std::string::npos, "libtorch_cpu.so");
  const Library library(path.c_str());
  const Engine engine(library);
  Thread first(torch, engine, 1);
  first.allocate();
  for (int round = 0; round < 8; ++round) first.work(0);
  std::vector<std::thread> others;
  for (unsigned seed = 2; seed < 6; ++seed) {
    others.emplace_back([&torch, &engine, seed] {
      Thread thread(torch, engine, seed);
      for (int round = 0; round < 8; ++round) thread.work(0);
      if (seed % 2 == 0) thread.leave();
    });
  }
  for (std::thread& other : others) other.join();
  // The nodes of one thread evaluated by another, and more kinds than a table of a lane can hold.
  std::vector<Made> made;
  for (int kind = 0; kind < kFakesKinds; ++kind) made.push_back(first.make(kind));
  for (std::uint64_t number = 0; number < 600; ++number)
    made.push_back(first.make(kFakesAddmm, 1'000'000 + number % 300));
  first.allocate();
  std::thread([&torch, &engine, &made] {
    Thread thread(torch, engine, 7);
    for (const Made& node : made) {
      try {
        thread.evaluate(node, 4);
      } catch (const std::runtime_error&) {
        thread.allocate();
      }
    }
  }).join();
  return 0;
}
