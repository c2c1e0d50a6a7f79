// Training loops with known leaks: kind, place and rate; and loops without leaks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "unit/analyze/training_loop.h"

namespace tidemark::testing {

inline constexpr int kSteps = 160;

inline std::string numbered(const char* name, int number) {
  return name + std::to_string(number);
}

struct Loop {
  const char* name;
  const char* function;  // the leaking function; null: none
  double bytes_per_step;
  void (*run)(TrainingLoop& loop);
  bool needs_stacks = false;  // without them the leak cannot be distinguished
};

inline void PrintTo(const Loop& loop, std::ostream* out) {
  *out << loop.name;
}

inline void nothing(int) {}

inline void run_slow_leak(TrainingLoop& loop) {
  loop.run(kSteps, [&](int step) { loop.allocate(numbered("kept", step), 512, "track"); });
}

inline const Loop kLoops[] = {
    {"slow leak", "track", 512, run_slow_leak},
    {"slow leak, all freed at exit", "track", 512,
     [](TrainingLoop& loop) {
       run_slow_leak(loop);
       loop.free_everything();
     }},
    {"slow leak in noise", "track", 512,
     [](TrainingLoop& loop) {
       loop.varying = true;
       run_slow_leak(loop);
     }},
    {"leak from the stack of the noise", "forward", 512,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, [&](int step) { loop.allocate(numbered("kept", step), 512, "forward", 1); });
     }},
    {"leak of varying sizes", "track", 32.5 * 64,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, [&](int step) { loop.allocate(numbered("kept", step), loop.next_length(), "track"); });
     }},
    {"list of losses", "loss", 512,
     [](TrainingLoop& loop) {
       loop.keep_losses = true;
       loop.run(kSteps, nothing);
     }},
    {"leak of evaluations", "results", 409.6,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step % 10 != 9) return;
         for (int batch = 0; batch < 3; ++batch) loop.evaluate();
         loop.allocate(numbered("kept", step), 4096, "results");
       });
     }},
    {"leak from one of two alternating phases", "generator", 1024,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step % 2 == 0) loop.allocate(numbered("kept", step), 2048, "generator");
         if (step % 2 == 1) loop.touch(2048, "discriminator");
       });
     }},
    {"leak in every micro-step's sum", "loss", 2048,
     [](TrainingLoop& loop) {
       loop.micro_steps = 4;
       loop.keep_losses = true;
       loop.run(kSteps, nothing);
     }},
    {"leak that begins late", "track", 512,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step >= 70) loop.allocate(numbered("kept", step), 512, "track");
       });
     }},
    {"leak now and then", "track", 128,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (loop.random() % 4 == 0) loop.allocate(numbered("kept", step), 512, "track");
       });
     }},
    {"leak beside garbage of the same stack", "track", 512,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "track");
         loop.allocate(numbered("garbage", step), 1024, "track");
         if (step % 20 != 19) return;
         for (int old = step - 19; old <= step; ++old) loop.free(numbered("garbage", old));
       });
     }},
    {"history that is concatenated", "history", 1024,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("history", step), static_cast<std::uint64_t>(step + 1) * 1024, "history");
         if (step > 0) loop.free(numbered("history", step - 1));
       });
     },
     true},

    {"fixed shapes", nullptr, 0, [](TrainingLoop& loop) { loop.run(kSteps, nothing); }},
    {"all freed at exit", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, nothing);
       loop.free_everything();
     }},
    {"varying lengths", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.varying = true;
       loop.run(kSteps, nothing);
     }},
    {"warm-up", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step < 12) loop.allocate(numbered("buffer", step), 100'000, "workspace");
       });
     }},
    {"gradient accumulation", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.micro_steps = 4;
       loop.run(kSteps, nothing);
     }},
    {"gradient accumulation of varying lengths", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.micro_steps = 4;
       loop.varying = true;
       loop.run(kSteps, nothing);
     }},
    {"evaluation every 10 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         for (int batch = 0; step % 10 == 9 && batch < 5; ++batch) loop.evaluate();
       });
     }},
    {"metrics of an evaluation kept up to the next", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step % 10 != 9) return;
         loop.allocate(numbered("metric", step), 4096, "results");
         if (step > 10) loop.free(numbered("metric", step - 10));
       });
     }},
    {"garbage collected every 20 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("garbage", step), 1024, "track");
         if (step % 20 != 15) return;
         for (int old = std::max(0, step - 19); old <= step; ++old) loop.free(numbered("garbage", old));
       });
     }},
    {"losses of an epoch of 50 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "track");
         for (int old = step - 49; step % 50 == 49 && old <= step; ++old) loop.free(numbered("kept", old));
       });
     }},
    {"cache of masks, one for each of 8 lengths", nullptr, 0,
     [](TrainingLoop& loop) {
       std::vector<bool> known(8);
       loop.run(kSteps, [&](int step) {
         const std::uint32_t length = loop.random() % 8;
         if (!known[length]) loop.allocate(numbered("mask", step), 1000 * (length + 1), "mask");
         known[length] = true;
       });
     }},
    {"cache that fills for 40 steps", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step < 40) loop.allocate(numbered("kept", step), 512, "cache");
       });
     }},
    {"cache that fills ever slower", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (std::floor(20 * std::log(step + 2)) != std::floor(20 * std::log(step + 1)) && step < 110) {
           loop.allocate(numbered("kept", step), 512, "cache");
         }
       });
     }},
    {"queue of the last 16 losses", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "queue");
         if (step >= 16) loop.free(numbered("kept", step - 16));
       });
     }},
    {"buffer of 32 samples, replaced at random", nullptr, 0,
     [](TrainingLoop& loop) {
       std::vector<int> held;
       loop.run(kSteps, [&](int step) {
         loop.allocate(numbered("kept", step), 512, "buffer");
         held.push_back(step);
         if (held.size() <= 32) return;
         const std::size_t out = loop.random() % 32;
         loop.free(numbered("kept", held[out]));
         held.erase(held.begin() + static_cast<std::ptrdiff_t>(out));
       });
     }},
    {"large buffer in mid-training", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.run(kSteps, [&](int step) {
         if (step == 80 || step == 100) loop.allocate(numbered("kept", step), 1 << 20, "profile");
       });
     }},
    {"longer batches from step to step", nullptr, 0,
     [](TrainingLoop& loop) {
       loop.length_of_step = [](int step) { return std::uint64_t{512} + 16U * static_cast<std::uint64_t>(step); };
       loop.run(kSteps, nothing);
     }},
};

}  // namespace tidemark::testing
