#include <optional>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"

namespace tidemark {
namespace {

ComparedTotal both(const ComparedValue& value) {
  return {value.a, value.b};
}

struct BudgetKept {
  const Comparison* comparison = nullptr;
};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const ComparedTotal& total) {
  v.type("ComparedValue", "A value in both runs; null where it is not known.");
  v.field("a", total.a);
  v.field("b", total.b);
  v.field("change", total.change());
}

template <typename Visitor>
void describe(Visitor& v, const ChangeGroup& group) {
  v.type("ChangeGroup", "Stacks that changed alike.");
  v.field("stack_count", group.stacks);
  v.field("change_bytes", group.bytes, "the sum of their changes");
}

template <typename Visitor>
void describe(Visitor& v, const ComparedStack& row) {
  v.type("ComparedRow", "A stack or owner in both runs.");
  v.field("kind", named<kChangeKindNames, ChangeKind::unchanged>(row.kind));
  v.field("peak_bytes", both(row.peak_bytes), "held at the device's own peak");
  v.field("peak_block_count", both(row.peak_blocks));
  v.field("total_allocated_bytes", both(row.traffic_bytes), "the sum of all allocations");
  v.field("allocation_count", both(row.allocations));
  v.part(holder(row.stack));
}

template <typename Visitor>
void describe(Visitor& v, const ComparedCategory& category) {
  v.type("ComparedCategory", "Memory of one category in both runs.");
  v.field("category", named<kCategoryNames>(category.category));
  v.field("peak_bytes", both(category.bytes), "held at the device's own peak");
}

template <typename Visitor>
void describe(Visitor& v, const ComparedDevice& device) {
  v.type("ComparedDevice", "A device in both runs.");
  v.field("device", to_string(device.device));
  v.field("in_a", device.in_a);
  v.field("in_b", device.in_b);
  v.field("peak_allocated_bytes", device.peak_allocated);
  v.field("peak_reserved_bytes", device.peak_reserved);
  v.field("peak_active_bytes", device.peak_active);
  v.field("allocation_count", device.allocations);
  v.field("total_allocated_bytes", device.traffic);
  v.field("unrecorded_at_peak_bytes", device.unrecorded_at_peak);
  v.field_if(!device.categories.empty(), "categories_at_peak", device.categories,
             "the largest change first; in recordings that have owners");
  v.field("added", device.added, "not in A on this device");
  v.field("removed", device.removed, "not in B");
  v.field("grew", device.grew, "more bytes, or as many in more blocks");
  v.field("shrank", device.shrank, "less");
  v.field("unchanged", device.unchanged);
  v.field("rows", device.rows, "the largest change first");
  v.field("other_row_count", device.other_rows);
  v.field("other_change_bytes", device.other_change);
}

template <typename Visitor>
void describe(Visitor& v, const StackMatching& matching) {
  v.type("StackMatching", "By what stacks of the two runs were matched.");
  v.field("lines", matching.lines);
  v.field("python_frames", matching.python_frames);
  v.field("native_frames", matching.native_frames);
  v.field("qualified_names", matching.qualified_names);
}

template <typename Visitor>
void describe(Visitor& v, const OverBudget& device) {
  v.type("OverBudget", "A device whose peak grew by more than was allowed.");
  v.field("device", to_string(device.device));
  v.field("peak_allocated_bytes", ComparedTotal{device.a, device.b});
  v.field("excess_bytes", device.b - device.a.value_or(0));
}

namespace {

template <typename Visitor>
void describe(Visitor& v, const BudgetKept& budget) {
  static const Comparison kNone;
  const Comparison& comparison = budget.comparison == nullptr ? kNone : *budget.comparison;
  v.type("Budget", "The limit that `--fail-over` set, and whether it was kept.");
  v.field("limit", [&] { return comparison.budget->text; });
  v.field("exceeded", !comparison.over_budget.empty());
  v.field("over", comparison.over_budget);
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const Comparison& comparison) {
  v.type("Comparison", "What changed between two runs: totals of each device, and which stacks hold more or less.");
  v.field("a", comparison.a);
  v.field("b", comparison.b);
  v.field("by", named<kCompareByNames>(comparison.by));
  v.field("matching", comparison.matching);
  v.field("budget", when(comparison.budget.has_value(), BudgetKept{&comparison}), "null without --fail-over");
  v.field("devices", comparison.devices);
}
TIDEMARK_DESCRIBED(Comparison);

}  // namespace tidemark
