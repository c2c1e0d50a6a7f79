// Memory that grows from step to step of the training loop and is not freed: by stack, with its rate.
//
// A leak is growth that survives at the same phase of successive steps after warm-up, attributed to a stack. The growth
// of each step is measured at the start of the last step: blocks born in it that are still alive, and older than the
// blocks of that stack usually are when freed. docs/commands/leaks.md states the criterion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/leaks/growth.h"
#include "analyze/leaks/host_growth.h"
#include "analyze/leaks/objects.h"
#include "analyze/steps/training_steps.h"
#include "base/enum_names.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// All growth of the selected blocks on a device (an index into Store::devices), including non-leaks, fastest first.
/// Leaks of one kind and one source line are joined if their blocks also leak together.
[[nodiscard]] std::vector<GroupGrowth> find_device_growth(const Store& store, Symbols& symbols,
                                                          const TrainingSteps& steps, std::uint32_t warmup,
                                                          std::size_t device, const BlockFilter& filter = {});

/// Growth of leaks, restricted to blocks with a common property.
struct OwnedGrowth {
  BlockOwner owner;
  double bytes_per_step = 0;     ///< for each leak, in proportion to their share of its held bytes
  std::uint64_t held_bytes = 0;  ///< at the last step's start, in blocks born after warm-up
  std::uint64_t held_blocks = 0;
};

/// The same growth by one property; rows and the rest add up to the leaks.
struct GrowthByOwner {
  OwnerKind kind = OwnerKind::category;
  std::vector<OwnedGrowth> rows;  ///< fastest first
  std::uint64_t other_rows = 0;   ///< beyond the listed ones
  OwnedGrowth other;              ///< sum of the unlisted rows; without a name
};

/// Adds up leaks of one device. `groups` must outlive it.
class GrowthSums {
 public:
  explicit GrowthSums(const OwnerGroups& groups) : groups_(groups) {}

  /// `held`: the blocks of a leak that are held.
  void add(std::span<const StepSpan> held, double bytes_per_step);
  /// Lists `top` rows; 0 = all.
  [[nodiscard]] GrowthByOwner finish(OwnerKind kind, std::size_t top) const;

 private:
  const OwnerGroups& groups_;
  std::unordered_map<std::uint32_t, OwnedGrowth> sums_;  // by group
};

/// Growth below the floor is too slow to be a finding: an object that grows by less than this a step, and over the run
/// by less than this share of the device's peak allocated.
inline constexpr std::uint64_t kLeakFloorPerStep = 1024;
inline constexpr double kLeakFloorOfPeak = 0.01;

struct LeakOptions {
  std::optional<std::string> device;          ///< only this one: "cuda:0"
  std::size_t top = 10;                       ///< objects to list, and stacks and owners of each; 0 = all
  std::optional<std::uint32_t> warmup_steps;  ///< initial steps in which growth is ignored; nullopt: default_warmup()
  std::optional<std::uint64_t> min_growth;    ///< overrides the floor, in bytes per step; 0: no floor
  std::vector<std::uint64_t> step_starts_ns;  ///< when steps begin, increasing; empty: found in the recording
  BlockFilter filter = {};                    ///< selects blocks whose growth is listed
  const Attribution* attribution = nullptr;   ///< of this store; null: leaks are not grouped into objects
  std::optional<OwnerKind> by = {};           ///< Leaks::owners; needs the attribution
};

enum class LeakVerdict : std::uint8_t { leak, no_leak, insufficient_data };
inline constexpr EnumName<LeakVerdict> kLeakVerdictNames[] = {{LeakVerdict::leak, "leak"},
                                                              {LeakVerdict::no_leak, "no_leak"},
                                                              {LeakVerdict::insufficient_data, "insufficient_data"}};
[[nodiscard]] constexpr std::string_view name_of(LeakVerdict verdict) {
  return name_in(kLeakVerdictNames, verdict);
}

/// Why the data do not suffice for a verdict.
enum class InsufficientData : std::uint8_t { none, no_events, no_steps, too_few_steps };
inline constexpr EnumName<InsufficientData> kInsufficientDataNames[] = {
    {InsufficientData::none, "none"},
    {InsufficientData::no_events, "no_events"},
    {InsufficientData::no_steps, "no_steps"},
    {InsufficientData::too_few_steps, "too_few_steps"}};
[[nodiscard]] constexpr std::string_view name_of(InsufficientData reason) {
  return name_in(kInsufficientDataNames, reason);
}

/// The blocks of a stack on one device, or of the stacks that leak at one source line; blocks without a stack are
/// grouped by requested size.
struct LeakSite {
  Device device;
  std::vector<StackId> stack_ids;                ///< fastest first
  NamedStack stack;                              ///< of the first of them
  std::optional<std::uint64_t> requested_bytes;  ///< only blocks of this requested size; nullopt: all sizes
  Growth growth;
  std::uint64_t held_bytes = 0;  ///< at the last step's start, in blocks born after warm-up
  std::uint64_t held_blocks = 0;
  std::uint64_t first_step_ns = 0;  ///< when growth.first_step began
  std::uint64_t last_step_ns = 0;
  std::size_t object = 0;  ///< for a leak above the floor: index into Leaks::objects, or beyond the listed ones

  /// Growth over the run, at the start of the last step: some of it may have been freed since.
  [[nodiscard]] std::uint64_t grown_bytes() const;
};

/// Growth over the run, at the start of the last step; held memory may include older blocks.
[[nodiscard]] std::uint64_t grown_bytes(const Growth& growth, std::uint64_t held_bytes);

/// Leaks that grow together, or a single leak without a known object.
struct LeakObject {
  LeakObjectKind kind = LeakObjectKind::call_site;
  Device device;
  Growth growth;            ///< of all of them
  std::uint64_t leaks = 0;  ///< how many
  std::uint64_t held_bytes = 0;
  std::uint64_t held_blocks = 0;
  std::uint64_t first_step_ns = 0;
  std::uint64_t last_step_ns = 0;
  bool perhaps_input = false;  ///< as in GrownObject
  bool keeps_graphs = false;   ///< as in GrownObject
  MatchedMistake mistake;      ///< mistake that it matches, by its kind and the allocating functions of the project
  // The following are unset for a call site, which has the stack of its leak.
  bool ends_in_scalar = false;        ///< as in GrownObject
  NamedStack last;                    ///< last kept block of a forward pass: in an autograd graph, it is likely to keep
                                      ///< the others
  std::optional<FrameName> caller;    ///< the innermost frame of the project that all their activations have in common
  std::vector<GrowthByOwner> owners;  ///< by category, and by layer if the recording contains modules

  /// Confidence that the leaks belong to one object.
  [[nodiscard]] Confidence confidence() const {
    return kind == LeakObjectKind::call_site ? Confidence::exact : Confidence::estimated;
  }
};

/// Memory that steps leave at one stack until it is freed together (find_kept_together).
struct KeptSite {
  Device device;
  NamedStack stack;
  std::uint32_t steps = 0;  ///< maximum number of steps whose blocks are freed in one step
  std::uint32_t times = 0;  ///< so often they are freed
  std::uint64_t bytes = 0;  ///< at most at one time, after the steps that made them
  std::uint64_t blocks = 0;
};

/// Growth by owner on one device.
struct DeviceOwners {
  Device device;
  GrowthByOwner growth;
};

struct Leaks {
  RecordingInfo recording;
  LeakVerdict verdict = LeakVerdict::insufficient_data;
  InsufficientData insufficient = InsufficientData::none;  ///< none unless the verdict is insufficient_data
  TrainingSteps steps;
  NamedStack anchor;                ///< of steps.anchor
  std::optional<std::string> mark;  ///< text of steps.mark
  std::uint32_t warmup_steps = 0;
  bool of_last_part = false;                ///< the recording is the last part of a longer one: its steps are the last
                                            ///< ones
  std::uint32_t analyzed_steps = 0;         ///< steps after warm-up that could leave something, at most
  std::optional<std::uint64_t> min_growth;  ///< as given in the options
  std::uint64_t leak_count = 0;             ///< including unlisted ones
  double bytes_per_step = 0;                ///< of all objects
  std::uint64_t object_count = 0;           ///< including unlisted ones
  std::vector<LeakObject> objects;          ///< fastest first; each leak above the floor is of one
  std::vector<LeakSite> leaks;              ///< fastest first, of the listed objects
  std::vector<DeviceOwners> owners;         ///< of all leaks, grouped by LeakOptions::by
  std::uint64_t small_leak_count = 0;       ///< leaks below the floor: no part of the verdict
  double small_bytes_per_step = 0;
  std::vector<LeakSite> small_leaks;  ///< fastest first
  std::uint64_t non_leak_growth_count = 0;
  std::vector<LeakSite> non_leak_growth;  ///< growth that is not a leak; most bytes held first
  std::uint64_t kept_over_steps_count = 0;
  std::vector<KeptSite> kept_over_steps;  ///< sites above the threshold of advice (is_worth_advice), most bytes first
  std::vector<HostGrowth> host_growth;    ///< from the warm-up to the last step; does not affect the verdict
};

/// Fails when the recording does not contain the requested device or the property to group by, or when step_starts_ns
/// does not increase.
Result<Leaks> analyze_leaks(const Store& store, Symbols& symbols, const LeakOptions& options);

/// Fills the lists of `leaks`, which has steps and warm-up set. All arguments must outlive it.
class LeakList {
 public:
  LeakList(const Store& store, Symbols& symbols, const LeakOptions& options, Leaks& leaks)
      : store_(store), symbols_(symbols), options_(options), leaks_(leaks) {}

  /// Fails if the recording lacks the data for LeakOptions::by.
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
  void list_kept(std::size_t device);

  const Store& store_;
  Symbols& symbols_;
  const LeakOptions& options_;
  Leaks& leaks_;
  std::optional<OwnerGroups> by_;
  std::vector<std::pair<OwnerKind, OwnerGroups>> parts_;  // groups by which each object is split
  std::vector<Found> found_;                              // above the floor
};

}  // namespace tidemark
