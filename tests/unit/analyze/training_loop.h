// A training loop as the allocator sees it, for tests of what looks at steps: batch, forward, loss, backward (without
// Python stacks, as on autograd's threads), optimizer. Tests add what is special in `each_step`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "unit/store/store_scenario.h"

namespace tidemark::testing {

class TrainingLoop {
 public:
  enum class Stacks : std::uint8_t { named_optimizer, unnamed_optimizer, none };
  static constexpr int kLayers = 4;

  explicit TrainingLoop(Stacks stacks, Device device = kGpu) : stacks_(stacks), device_(device), random_(7) {
    root_ = place("<module>", "train.py", 1, {});
    const char* optim = stacks == Stacks::named_optimizer ? "/site-packages/torch/optim/adamw.py" : "fused.py";
    optimizer_ = place("step", optim, 9, root_);
    backward_ = {};
  }

  /// Runs `steps` steps; `each_step(k)` is called at the end of each, before the next batch.
  void run(int steps, const std::function<void(int)>& each_step) {
    for (int layer = 0; layer < kLayers; ++layer)
      allocate("weight" + std::to_string(layer), weight_bytes(layer), "init", 10 + layer);
    for (step_ = 0; step_ < steps; ++step_) {
      train_step();
      each_step(step_);
    }
  }
  /// As a program does when it ends.
  void free_everything() {
    const auto live = live_;
    for (const std::string& name : live) free(name);
  }

  void allocate(const std::string& name, std::uint64_t size, const std::string& function, int line = 0) {
    const StackId stack = place(function, "model.py", static_cast<std::uint32_t>(line + 1), root_);
    allocate_at(name, size, stack);
  }
  void free(const std::string& name) {
    scenario.free(time_ += 1000, name);
    std::erase(live_, name);
  }
  /// Allocated and freed at once.
  void touch(std::uint64_t size, const std::string& function, int line = 0) {
    allocate("touched", size, function, line);
    free("touched");
  }
  /// A forward pass that keeps nothing.
  void evaluate() {
    const std::uint64_t length = next_length();
    for (int layer = 0; layer < kLayers; ++layer) touch(length * 8, "evaluate", layer);
  }
  std::uint64_t next_length() {
    if (length_of_step) return length_of_step(step_);
    return varying ? 64 * (1 + random_() % 64) : 2048;
  }
  std::uint32_t random() { return static_cast<std::uint32_t>(random_()); }

  Scenario scenario;
  bool varying = false;                              ///< batches of random length
  int micro_steps = 1;                               ///< gradient accumulation
  bool keep_losses = false;                          ///< `losses.append(loss)`
  std::function<std::uint64_t(int)> length_of_step;  ///< instead of fixed or random lengths

 private:
  static std::uint64_t weight_bytes(int layer) { return 4096U * static_cast<std::uint64_t>(layer + 1); }
  StackId place(const std::string& function, const std::string& file, std::uint32_t line, StackId parent) {
    if (stacks_ == Stacks::none) return {};
    const auto [entry, is_new] = places_.try_emplace(function + file + std::to_string(line));
    if (is_new) entry->second = scenario.push(parent, scenario.python(function, file, line));
    return entry->second;
  }
  void allocate_at(const std::string& name, std::uint64_t size, StackId stack) {
    scenario.allocate(time_ += 1000, name, size, device_, stack);
    live_.push_back(name);
  }
  void replace(const std::string& name, std::uint64_t size, const std::string& function) {
    const std::string before = name + std::to_string(replaced_[name]);
    allocate(name + std::to_string(++replaced_[name]), size, function);
    if (replaced_[name] > 1) free(before);
  }
  void train_step() {
    for (int micro = 0; micro < micro_steps; ++micro) {
      const std::uint64_t length = next_length();
      replace("batch", length, "load");
      for (int layer = 0; layer < kLayers; ++layer) {
        allocate("activation" + std::to_string(layer), length * 8 + static_cast<std::uint64_t>(layer), "forward",
                 layer);
        touch(length * 2, "forward", 20 + layer);
      }
      if (keep_losses) {
        allocate("loss" + std::to_string(++losses_), 512, "loss");
      } else {
        replace("loss", 512, "loss");
      }
      for (int layer = kLayers; layer-- > 0;) {
        allocate_at("temporary", length * 4, backward_);
        free("activation" + std::to_string(layer));
        if (micro == 0) allocate_at("gradient" + std::to_string(layer), weight_bytes(layer), backward_);
        free("temporary");
      }
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      if (step_ == 0) allocate_at("state" + std::to_string(layer), 2 * weight_bytes(layer), optimizer_);
      allocate_at("update" + std::to_string(layer), weight_bytes(layer), optimizer_);
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      free("update" + std::to_string(layer));
      free("gradient" + std::to_string(layer));
    }
  }

  Stacks stacks_;
  Device device_;
  std::mt19937 random_;
  StackId root_;
  StackId optimizer_;
  StackId backward_;
  std::map<std::string, StackId> places_;
  std::map<std::string, int> replaced_;
  std::deque<std::string> live_;
  std::uint64_t time_ = 0;
  int step_ = 0;
  int losses_ = 0;
};

}  // namespace tidemark::testing
