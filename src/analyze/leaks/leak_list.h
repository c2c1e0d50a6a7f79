// The leaks of a recording, sorted out: which are of one object, above the floor, or only growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/leaks/leaks.h"
#include "base/result.h"

namespace tidemark {

/// Fills the lists of `leaks`, whose steps and warm-up are set. What it is given must outlive it.
class LeakList {
 public:
  LeakList(const Store& store, Symbols& symbols, const LeakOptions& options, Leaks& leaks)
      : store_(store), symbols_(symbols), options_(options), leaks_(leaks) {}

  /// Fails where the recording does not have what LeakOptions::by asks for.
  Result<void> prepare();
  /// An index into Store::devices.
  void add_device(std::size_t device);
  /// Sorts, adds up and cuts.
  void finish();

 private:
  struct Found {
    LeakObject object;
    std::vector<LeakSite> sites;  // fastest first
  };

  [[nodiscard]] std::uint32_t boundaries() const { return static_cast<std::uint32_t>(leaks_.steps.starts.size()); }
  [[nodiscard]] LeakSite site_of(const GroupGrowth& leak, std::size_t device) const;
  [[nodiscard]] Found describe(const GrownObject& grown, std::size_t device) const;
  [[nodiscard]] bool is_above_floor(const LeakObject& object, std::size_t device) const;
  [[nodiscard]] std::vector<StepSpan> held_spans(const GrownObject& grown) const;
  [[nodiscard]] std::vector<GrowthByOwner> owners_of(const GrownObject& grown) const;
  void list_found();

  const Store& store_;
  Symbols& symbols_;
  const LeakOptions& options_;
  Leaks& leaks_;
  std::optional<OwnerGroups> by_;
  std::vector<std::pair<OwnerKind, OwnerGroups>> parts_;  // what each object is told by
  std::vector<Found> found_;                              // above the floor
};

}  // namespace tidemark
