// Stacks put together by the site that they show: what a person calls one site in the program.
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
  NamedStack stack;  ///< the one of them that held most; with a module where it is that of all
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

/// What held memory on a device at its peak.
[[nodiscard]] std::vector<StackUsage> usages_at_peak(const Overview& overview, std::size_t device);

/// The same of those that `holders` lists: StackUsage::stack is Holders::of().
[[nodiscard]] std::vector<StackUsage> usages_at_peak(const Store& store, std::size_t device, const Holders& holders);

/// `whole`: the bytes that shares are of, or what the usages hold where that is more; the shares are 0 where it is.
/// `top`: how many call_sites to list; 0 = all.
[[nodiscard]] CallSites group_by_call_site(std::vector<StackUsage> usages, Symbols& symbols, std::uint64_t whole,
                                           std::size_t top, const Holders& holders = {});

}  // namespace tidemark
