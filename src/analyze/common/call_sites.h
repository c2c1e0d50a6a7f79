// Groups stacks by call site: the place in the program that they are shown as.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/common/holders.h"
#include "analyze/common/stack_names.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// All stacks of one place: see shown_place(). In lists by owner, an owner.
struct CallSite {
  NamedStack stack;  ///< the stack that held most; with a module if all have the same
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t stacks = 0;  ///< how many stacks were put together
  double share = 0;          ///< of the whole
};

struct CallSites {
  std::vector<CallSite> call_sites;    ///< most bytes first
  std::uint64_t other_call_sites = 0;  ///< beyond the listed ones
  std::uint64_t other_bytes = 0;
};

/// Usage of a device at its peak, by stack.
[[nodiscard]] std::vector<StackUsage> usages_at_peak(const Overview& overview, std::size_t device);

/// The same for the blocks that `holders` lists: StackUsage::stack is Holders::of().
[[nodiscard]] std::vector<StackUsage> usages_at_peak(const Store& store, std::size_t device, const Holders& holders);

/// `whole`: total for shares, or the sum of the usages if that is larger; the shares are 0 if it is 0. `top`: number of
/// call sites to list; 0 = all.
[[nodiscard]] CallSites group_by_call_site(std::vector<StackUsage> usages, Symbols& symbols, std::uint64_t whole,
                                           std::size_t top, const Holders& holders = {});

}  // namespace tidemark
