#include "analyze/attribution/workspaces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "analyze/common/frame_origin.h"
#include "analyze/common/stack_matching.h"

namespace tidemark {
namespace {

// ":4096:2:16:8" in units of 1,024 bytes, and on GPUs of compute capability 9.0 and above ":4096:8".
constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{4096 * 2 + 16 * 8} * 1024;
constexpr std::uint64_t kHopperWorkspaceBytes = std::uint64_t{4096} * 8 * 1024;

// Of cuBLASLt, which adds a Linear's bias: 1 MiB of its own (seen with PyTorch 2.11).
constexpr std::uint64_t kLtWorkspaceBytes = std::uint64_t{1024} * 1024;

enum class Library : std::uint8_t { cublas, cublas_lt };

// Without threads (PyTorch's snapshots), autograd's is the one in backward passes.
using Holder = std::tuple<std::uint8_t, ThreadId, bool, Library>;

bool is_called_by_linear(const Definitions& definitions, StackId stack) {
  if (stack.value >= definitions.stacks.size()) return false;
  const LocationId innermost = definitions.stacks[stack.value].location;
  if (innermost.value >= definitions.locations.size()) return false;
  const Location& location = definitions.locations[innermost.value];
  const auto text = [&](StringId id) {
    return id.value < definitions.strings.size() ? std::string_view(definitions.strings[id.value]) : std::string_view();
  };
  return plain_name(text(location.function)) == "forward" &&
         installed_path(text(location.file)) == "torch/nn/modules/linear.py";
}

// Other blocks may be as big as cuBLASLt's, but Linear.forward keeps nothing else for ever.
std::optional<Library> library_of(const Store& store, std::uint32_t block) {
  const std::uint64_t size = store.blocks.size[block];
  if (size == kWorkspaceBytes || size == kHopperWorkspaceBytes) return Library::cublas;
  if (size != kLtWorkspaceBytes || !is_called_by_linear(store.definitions, store.blocks.stack[block])) return {};
  return Library::cublas_lt;
}

}  // namespace

std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs) {
  const Blocks& blocks = store.blocks;
  std::map<Holder, std::vector<BlockId>> kept;
  for (std::uint32_t block = 0; block < blocks.count(); ++block) {
    const std::optional<Library> library = library_of(store, block);
    if (!library || store.devices[blocks.device[block]].device.type != DeviceType::cuda) continue;
    const std::uint32_t next = runs.pass(block).next;
    const bool outlived_next = next != Pass::kNone && runs.passes[next].end_change != Pass::kNone;
    if (blocks.death_change[block] != Blocks::kAlive || !outlived_next) continue;
    const bool in_backward = runs.run(block).phase == Phase::backward;
    kept[{blocks.device[block], blocks.thread[block], in_backward, *library}].push_back(BlockId{block});
  }
  std::vector<BlockId> workspaces;
  for (const auto& [holder, found] : kept) {
    if (found.size() == 1) workspaces.push_back(found.front());
  }
  std::sort(workspaces.begin(), workspaces.end());
  return workspaces;
}

}  // namespace tidemark
