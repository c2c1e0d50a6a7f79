// Writes the seeds of monitor_state_fuzz, by hand: make_monitor_state_seeds tests/fuzz/corpus/monitor_state
#include <cstdio>
#include <fstream>
#include <string>

#include "monitor/state_codec.h"
#include "unit/monitor/training_machine.h"

namespace {

using namespace tidemark;

void append(std::string& seed, const std::string& message) {
  const std::size_t length = message.size() - 4;  // without the checksum
  seed += static_cast<char>(length);
  seed += static_cast<char>(length >> 8);
  seed.append(message, 0, length);
}

/// A full state, and the changes since.
std::string seed_of(std::size_t gpus, int seconds_before, int changes) {
  TrainingMachine machine(gpus);
  for (int second = 0; second < seconds_before; ++second) machine.pass_second();
  StateEncoder encoder;
  std::string seed;
  append(seed, encoder.full(machine.snapshot()));
  for (int n = 0; n < changes; ++n) {
    machine.pass_second();
    append(seed, encoder.changes(machine.snapshot()));
  }
  return seed;
}

/// Features that a training machine does not have: lists that are empty there.
std::string rare_seed() {
  MonitorSnapshot state;
  WatchedDevice& device = state.state.devices.emplace_back();
  device.processes = {{7, ProcessKind::other, 512, "python"}};
  RecordedProcess& recorded = state.recorded.emplace_back();
  recorded.problem = "gone";
  recorded.killed.emplace_back().process.name = "python";
  recorded.owners.emplace_back().categories[0] = 7;
  recorded.growths.emplace_back().second.sources.emplace_back().source = 3;
  StateEncoder encoder;
  std::string seed;
  append(seed, encoder.full(state));
  state.recorded.clear();
  state.state.now_ns = 5;
  append(seed, encoder.changes(state));
  return seed;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: make_monitor_state_seeds FOLDER\n");
    return 2;
  }
  const auto write = [&](const char* name, const std::string& seed) {
    std::ofstream(std::string(arguments[1]) + "/" + name + ".state", std::ios::binary) << seed;
  };
  write("empty", seed_of(0, 0, 1));
  write("one_gpu", seed_of(1, 3, 2));
  write("two_gpus", seed_of(2, 40, 3));
  write("rare", rare_seed());
  return 0;
}
