// Writes the seeds of cluster_fuzz, by hand: make_cluster_seeds tests/fuzz/corpus/cluster
#include <cstdio>
#include <fstream>
#include <string>

#include "cluster/protocol.h"
#include "unit/cluster/scripted_node.h"

namespace {

using namespace tidemark;

void append(std::string& seed, const std::string& bytes) {
  auto message = decode_agent_message(bytes);
  if (!message) return;
  if (!message->state.empty()) message->state.resize(message->state.size() - 4);  // without the checksum
  const std::string sent = encode(*message);
  seed += static_cast<char>(sent.size());
  seed += static_cast<char>(sent.size() >> 8);
  seed += sent;
}

/// Two nodes, one of which is recorded, and leaves.
std::string job_seed() {
  ScriptedNode a("a", 1);
  ScriptedNode b("b", 2);
  for (std::uint32_t rank = 0; rank < 3; ++rank) a.add_rank(rank, (20 + rank * 5) * kGiB, "trainer");
  b.add_rank(3, 20 * kGiB);
  b.record(0, 19 * kGiB, {{Category::parameter, 8 * kGiB}, {Category::activation, 10 * kGiB}});
  b.set_steps(0, 5);
  b.risk(0).level = RiskLevel::high;
  b.risk(0).seconds_to_limit = Interval{300, 200, 400};
  std::string seed;
  for (std::uint64_t second = 1; second <= 2; ++second) {
    append(seed, a.message(second * kSecondNs));
    append(seed, b.message(second * kSecondNs));
  }
  append(seed, b.sender().leave(3 * kSecondNs));
  return seed;
}

/// An agent that is started again, and the one before goes on.
std::string rival_seed() {
  ScriptedNode first("a", 1);
  ScriptedNode second("a", 2);
  std::string seed;
  append(seed, first.message(kSecondNs));
  append(seed, second.message(kSecondNs));
  append(seed, first.message(2 * kSecondNs));
  return seed;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: make_cluster_seeds FOLDER\n");
    return 2;
  }
  const auto write = [&](const char* name, const std::string& seed) {
    std::ofstream(std::string(arguments[1]) + "/" + name + ".messages", std::ios::binary) << seed;
  };
  write("job", job_seed());
  write("rival", rival_seed());
  return 0;
}
