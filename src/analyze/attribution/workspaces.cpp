#include "analyze/attribution/workspaces.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidemark {
namespace {

// ":4096:2:16:8" in units of 1,024 bytes, and on GPUs of compute capability 9.0 and above ":4096:8".
constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{4096 * 2 + 16 * 8} * 1024;
constexpr std::uint64_t kHopperWorkspaceBytes = std::uint64_t{4096} * 8 * 1024;

// Without threads (PyTorch's snapshots), autograd's is the one in backward passes.
using Holder = std::tuple<std::uint8_t, ThreadId, bool>;

}  // namespace

std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs) {
  const Blocks& blocks = store.blocks;
  std::map<Holder, std::vector<BlockId>> kept;
  for (std::uint32_t block = 0; block < blocks.count(); ++block) {
    const std::uint64_t size = blocks.size[block];
    if (size != kWorkspaceBytes && size != kHopperWorkspaceBytes) continue;
    if (store.devices[blocks.device[block]].device.type != DeviceType::cuda) continue;
    const std::uint32_t next = runs.pass(block).next;
    const bool outlived_next = next != Pass::kNone && runs.passes[next].end_change != Pass::kNone;
    if (blocks.death_change[block] != Blocks::kAlive || !outlived_next) continue;
    kept[{blocks.device[block], blocks.thread[block], runs.run(block).phase == Phase::backward}].push_back(
        BlockId{block});
  }
  std::vector<BlockId> workspaces;
  for (const auto& [holder, found] : kept) {
    if (found.size() == 1) workspaces.push_back(found.front());
  }
  std::sort(workspaces.begin(), workspaces.end());
  return workspaces;
}

}  // namespace tidemark
