#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"
#include "query/words/attribution.h"
#include "query/words/rates.h"

namespace tidemark {
namespace {

// Tags for several descriptions of one type.
struct BeyondTheListed {};
struct OfGroups {};

// Growth by the available properties.
struct GrowthByOwners {
  std::span<const GrowthByOwner> growth;
};

template <typename Visitor>
void describe_growth(Visitor& v, const OwnedGrowth& growth) {
  v.field("bytes_per_step", growth.bytes_per_step);
  v.field("held_bytes", growth.held_bytes, "at the last step's start, as the next");
  v.field("held_block_count", growth.held_blocks);
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const OwnedGrowth& row) {
  v.type("OwnerGrowth", "An owner's growth.");
  v.part(row.owner);
  describe_growth(v, row);
}

template <typename Visitor>
void describe(Visitor& v, const GrowthByOwner& growth, const BeyondTheListed& /*tag*/) {
  v.type("OtherGrowth", "Growth of the owners beyond the listed ones.");
  v.field("count", growth.other_rows, "owners");
  describe_growth(v, growth.other);
}

template <typename Visitor>
void describe(Visitor& v, const GrowthByOwners& owners) {
  v.type("GrowthByOwners", "Growth by the owners that were asked for; the others are absent.");
  for (const EnumName<OwnerKind>& kind : kOwnerKindNames) {
    const auto found = std::find_if(owners.growth.begin(), owners.growth.end(),
                                    [&](const GrowthByOwner& growth) { return growth.kind == kind.value; });
    const bool present = found != owners.growth.end();
    const GrowthByOwner growth = present ? *found : GrowthByOwner();
    const std::string rows = plural_of(kind.value);
    v.field_if(present, rows, growth.rows, "fastest first; they and the others add up to all");
    v.field_if(present, "other_" + rows, in(growth, BeyondTheListed()));
  }
}

template <typename Visitor>
void describe(Visitor& v, const DeviceOwners& owners) {
  v.type("DeviceGrowth", "What grows on one device, by owner.");
  v.field("device", to_string(owners.device));
  v.part(GrowthByOwners{{&owners.growth, 1}});
}

template <typename Visitor>
void describe(Visitor& v, const MatchedMistake& mistake, const Device& device) {
  v.type("UsualMistake", "A mistake that a leak matches, its confidence, and what to do about it.");
  v.field("name", named<kUsualMistakeNames, UsualMistake::none>(mistake.mistake));
  v.field("confidence", named<kConfidenceNames>(mistake.confidence));
  v.field("cause", usual_mistake_words(mistake.mistake, device).cause);
  v.field("fix", usual_mistake_words(mistake.mistake, device).fix, "what to do");
}

template <typename Visitor>
void describe(Visitor& v, const LeakObject& group) {
  const Growth& growth = group.growth;
  const bool joined = group.kind != LeakObjectKind::call_site;
  const bool mistaken = group.mistake.mistake != UsualMistake::none;
  v.type("LeakGroup", "Leaks with one cause: a retained graph, or a call site.");
  v.field("kind", named<kLeakObjectKindNames>(group.kind));
  v.field("confidence", named<kConfidenceNames>(group.confidence()), "of the leaks having one cause");
  v.field("device", to_string(group.device));
  v.field("bytes_per_step", growth.bytes_per_step.value, "growth, with its 95% interval");
  v.field("bytes_per_step_low", growth.bytes_per_step.low);
  v.field("bytes_per_step_high", growth.bytes_per_step.high);
  v.field("blocks_per_step", when(growth.kind == GrowthKind::retained, growth.blocks_per_step),
          "null where each step replaces its block");
  v.field("growing_step_count", growth.grown_steps, "analyzed steps that left memory behind");
  v.field("analyzed_step_count", growth.analyzed_steps);
  v.field("every_steps", when(growth.every_steps != 0, growth.every_steps),
          "steps from one growth to the next; null where each step grows, or at no fixed interval");
  v.field("first_step", growth.first_step, "with growth; steps count from 0");
  v.field("first_step_ns", group.first_step_ns);
  v.field("last_step", growth.last_step, "with growth");
  v.field("last_step_ns", group.last_step_ns);
  v.field("held_bytes", group.held_bytes, "at the last step's start, in blocks allocated after the warm-up");
  v.field("held_block_count", group.held_blocks);
  v.field("leak_count", group.leaks, "how many leaks it consists of");
  v.field("perhaps_input", group.perhaps_input,
          "whether it is a call site that another group's forward passes may retain as their input");
  v.field("mistake", in(when(mistaken, group.mistake), group.device), "the usual mistake that it matches; null: none");
  v.field("retained_by", joined ? known(group.last) : nullptr,
          "stack of the tensor that is made last, likely the one that retains the others; null for a call site");
  v.field("caller", group.caller, "innermost frame of the project common to the stacks of its activations");
  v.part(GrowthByOwners{group.owners});
}

template <typename Visitor>
void describe(Visitor& v, const LeakSite& site) {
  const Growth& growth = site.growth;
  const bool rated = growth.classification != GrowthClass::unclear;
  const bool counted = rated && growth.kind == GrowthKind::retained;
  v.type("LeakSite", "Growth of one stack from step to step; rates are null where the growth is unclear.");
  v.field("device", to_string(site.device));
  v.field("classification", named<kGrowthClassNames>(growth.classification));
  v.field("kind", named<kGrowthKindNames>(growth.kind), "retained: blocks accumulate; replaced: by larger ones");
  v.field("bytes_per_step", when(rated, growth.bytes_per_step.value), "growth, with its 95% interval");
  v.field("bytes_per_step_low", when(rated, growth.bytes_per_step.low));
  v.field("bytes_per_step_high", when(rated, growth.bytes_per_step.high));
  v.field("blocks_per_step", when(counted, growth.blocks_per_step), "null where each step replaces its block");
  v.field("growing_step_count", when(rated, growth.grown_steps), "analyzed steps that left memory behind");
  v.field("analyzed_step_count", when(rated, growth.analyzed_steps));
  v.field("first_step", growth.first_step, "with growth; steps count from 0");
  v.field("first_step_ns", site.first_step_ns);
  v.field("last_step", growth.last_step, "with growth");
  v.field("last_step_ns", site.last_step_ns);
  v.field("freed_after_steps", when(growth.released_after != 0, growth.released_after),
          "step boundaries that its freed blocks live through at most; null when none is freed");
  v.field("held_bytes", site.held_bytes, "at the last step's start, in blocks allocated after the warm-up");
  v.field("held_block_count", site.held_blocks);
  v.field("requested_bytes", site.requested_bytes, "without a stack: only blocks of this size");
  v.field("stack_count", site.stack_ids.size(), "stacks that leak at this source line");
  v.field("stack", known(site.stack), "the one that grows fastest");
}

template <typename Visitor>
void describe(Visitor& v, const LeakSite& site, const OfGroups& /*tag*/) {
  v.type("Leak", "A stack that leaks; `group` is its index in `groups`.");
  v.part(site);
  v.field("group", site.object);
}

template <typename Visitor>
void describe(Visitor& v, const TrainingSteps& steps, const Leaks& leaks) {
  std::vector<std::uint64_t> starts;
  for (const TrainingSteps::Start& start : steps.starts) starts.push_back(start.time_ns);
  v.type("TrainingSteps", "The training steps, and how they were told.");
  v.field("source", named<kStepSourceNames>(steps.source));
  v.field("count", steps.count());
  v.field("warmup_count", leaks.warmup_steps);
  v.field("analyzed_count", leaks.analyzed_steps);
  v.field("regularity", when(steps.regularity > 0, steps.regularity), "0 to 1; null for given steps");
  v.field("anchor", known(leaks.anchor), "stack that starts a step");
  v.field("mark", leaks.mark, "name of the marks that start a step");
  v.field("starts_ns", starts);
}

template <typename Visitor>
void describe(Visitor& v, const KeptSite& site) {
  v.type("KeptSite", "What several steps leave at one stack until it is freed together, again and again.");
  v.field("device", to_string(site.device));
  v.field("bytes", site.bytes, "at most at one time, after the steps that made them");
  v.field("block_count", site.blocks);
  v.field("step_count", site.steps, "at most, whose blocks are freed in one step");
  v.field("times", site.times, "steps that free blocks of several steps");
  v.field("stack", known(site.stack));
}

template <typename Visitor>
void describe(Visitor& v, const HostGrowth& growth) {
  v.type("HostGrowth", "Growth of the host's memory that is no tensors.");
  v.field("of", OneOf<"process", "other_processes">{growth.of_other_processes ? "other_processes" : "process"},
          "anonymous memory of the process, or PSS of the other processes of the job");
  v.field("from_bytes", growth.from_bytes, "at the first sample after the warm-up");
  v.field("from_ns", growth.from_ns);
  v.field("to_bytes", growth.to_bytes, "at the last sample");
  v.field("to_ns", growth.to_ns);
  v.field("bytes_per_second", growth.bytes_per_second);
  v.field("tensor_bytes", when(!growth.of_other_processes, growth.tensor_bytes),
          "growth of the process's tensors on the CPU in that time");
}

template <typename Visitor>
void describe(Visitor& v, const Leaks& leaks) {
  const bool judged = leaks.verdict != LeakVerdict::insufficient_data;
  v.type("Leaks", "Memory that grows from step to step.");
  v.part(leaks.recording);
  v.field("verdict", named<kLeakVerdictNames>(leaks.verdict));
  v.field("insufficient_data_reason",
          when(!judged, named<kInsufficientDataNames, InsufficientData::none>(leaks.insufficient)));
  v.field("bytes_per_step", when(judged, leaks.bytes_per_step),
          "of all groups above the floor; null without a verdict");
  v.field("groups", leaks.objects, "fastest first");
  v.field("other_group_count", leaks.object_count - leaks.objects.size());
  v.field("leaks", in(leaks.leaks, OfGroups()), "of the listed groups, fastest first");
  v.field("other_leak_count", leaks.leak_count - leaks.leaks.size());
  v.field("min_growth_bytes_per_step", leaks.min_growth, "--min-growth");
  v.field("small_leaks", leaks.small_leaks, "below the floor, fastest first: no part of the verdict");
  v.field("small_leaks_bytes_per_step", when(judged, leaks.small_bytes_per_step), "of all of them");
  v.field("other_small_leak_count", leaks.small_leak_count - leaks.small_leaks.size());
  v.field("non_leak_growth", leaks.non_leak_growth, "growth that is not a leak, most bytes held first");
  v.field("other_non_leak_growth_count", leaks.non_leak_growth_count - leaks.non_leak_growth.size());
  v.field("kept_over_steps", leaks.kept_over_steps,
          "kept for several steps and then freed together, most bytes first: no part of the verdict");
  v.field("other_kept_over_steps_count", leaks.kept_over_steps_count - leaks.kept_over_steps.size());
  v.field("host_growth", leaks.host_growth,
          "from the warm-up to the last step, where it goes on all along: no part of the verdict");
  v.field("by", when(!leaks.owners.empty(), leaks.owners), "by the owners that --by asks for; null without it");
  v.field("steps", in(leaks.steps, leaks));
}
TIDEMARK_DESCRIBED(Leaks);

}  // namespace tidemark
