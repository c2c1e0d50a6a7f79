// Leaks put together by the object that keeps their blocks: an autograd graph that is retained is one finding, whatever
// the number of call sites that allocated what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/leaks/device_leaks.h"
#include "base/enum_names.h"
#include "base/ids.h"
#include "store/store.h"

namespace tidemark {

enum class LeakObjectKind : std::uint8_t {
  call_site,       ///< one leak, of which nothing says what keeps its blocks
  forward_pass,    ///< activations, and perhaps inputs, of the same forward passes
  autograd_graph,  ///< likewise, and these are most of what the forward passes left behind for their backward passes
};
inline constexpr EnumName<LeakObjectKind> kLeakObjectKindNames[] = {{LeakObjectKind::call_site, "call_site"},
                                                                    {LeakObjectKind::forward_pass, "forward_pass"},
                                                                    {LeakObjectKind::autograd_graph, "autograd_graph"}};
[[nodiscard]] constexpr std::string_view name_of(LeakObjectKind kind) {
  return name_in(kLeakObjectKindNames, kind);
}

/// Leaks of one device that grow together.
struct GrownObject {
  LeakObjectKind kind = LeakObjectKind::call_site;
  std::vector<GroupGrowth> leaks;       ///< fastest first
  Growth growth;                        ///< of all of them
  StackId last;                         ///< where most of the forward passes made the block that they end in
  std::vector<StackId> forward_stacks;  ///< of the leaks of activations
  bool keeps_graphs = false;   ///< of a call site: its blocks by themselves are most of what those passes left behind
  bool perhaps_input = false;  ///< of a call site: it grows with the forward passes of another object, which may be
                               ///< what keeps it, if it is an input of theirs
};

/// Two leaks are of one object where the rarer one's blocks belong to the forward passes of the other, at least half of
/// them: activations to the pass in which they were made, inputs of the data phase to that or the next one. Without
/// attribution, or where only inputs grow, each leak is an object. `leaks`: of one device, an index into
/// Store::devices.
[[nodiscard]] std::vector<GrownObject> join_leaks(const Store& store, const Attribution* attribution,
                                                  std::size_t device, std::uint32_t boundaries, std::uint32_t warmup,
                                                  std::vector<GroupGrowth> leaks);

}  // namespace tidemark
