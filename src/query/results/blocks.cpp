// Blocks by owner, group, caller and lifetime: breakdown, table, tree and temporary.
#include <algorithm>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"
#include "query/words/attribution.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const BreakdownCell& cell) {
  v.type("BreakdownPart", "The blocks of an owner that have category, phase and certainty in common.");
  v.field("category", named<kCategoryNames>(cell.category));
  v.field("phase", named<kPhaseNames>(cell.phase));
  v.field("confidence", named<kConfidenceNames>(cell.confidence));
  v.field("bytes", cell.bytes);
  v.field("block_count", cell.blocks);
}

template <typename Visitor>
void describe(Visitor& v, const BreakdownRow& row) {
  v.type("BreakdownRow", "An owner of memory.");
  v.part(row.owner);
  v.field("bytes", row.bytes);
  v.field("block_count", row.blocks);
  v.field("share", row.share, "of allocated_bytes");
  v.field("parts", row.cells, "that add up to the row");
}

template <typename Visitor>
void describe(Visitor& v, const BreakdownGroup& group) {
  v.type("OtherRows", "Rows beyond the listed ones.");
  v.field("count", group.other_rows);
  v.field("bytes", group.other_bytes);
  v.field("block_count", group.other_blocks);
}

namespace {

// The existing ones in their order, then the others.
std::vector<OwnerKind> in_order(const std::vector<BreakdownGroup>& groups) {
  std::vector<OwnerKind> kinds;
  for (const BreakdownGroup& group : groups) kinds.push_back(group.kind);
  for (const EnumName<OwnerKind>& kind : kOwnerKindNames) {
    if (std::find(kinds.begin(), kinds.end(), kind.value) == kinds.end()) kinds.push_back(kind.value);
  }
  std::erase(kinds, OwnerKind::category);  // BreakdownDevice::categories
  return kinds;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const BreakdownDevice& device) {
  v.type("BreakdownDevice",
         "What a device held, by category and by the owners that were asked for; the others are absent.");
  v.field("device", to_string(device.device));
  v.field("at_ns", device.at_ns, "null: nothing was allocated");
  v.field("allocated_bytes", device.allocated_bytes);
  v.field("unrecorded_bytes", device.unrecorded_bytes, "of these, in no recorded block");
  v.field("categories", device.categories, "most bytes first; unknown last");
  for (const OwnerKind kind : in_order(device.groups)) {
    const auto found = std::find_if(device.groups.begin(), device.groups.end(),
                                    [&](const BreakdownGroup& group) { return group.kind == kind; });
    static const BreakdownGroup kNone;
    const bool present = found != device.groups.end();
    const BreakdownGroup& group = present ? *found : kNone;
    const std::string rows = plural_of(kind);
    v.field_if(present, rows, group.rows, "most bytes first");
    v.field_if(present, "other_" + rows, group);
  }
}

template <typename Visitor>
void describe(Visitor& v, const Breakdown& breakdown) {
  v.type("Breakdown", "Whose memory it is: parameters, gradients, activations, ...");
  v.part(breakdown.recording);
  v.field("devices", breakdown.devices);
}
TIDEMARK_DESCRIBED(Breakdown);

template <typename Visitor>
void describe(Visitor& v, const TableRow& row) {
  const auto is = [&]<typename Key>(std::type_identity<Key>) { return std::holds_alternative<Key>(row.key); };
  const auto get = [&]<typename Key>(std::type_identity<Key>) {
    const Key* key = std::get_if<Key>(&row.key);
    return key == nullptr ? Key() : *key;
  };
  constexpr std::type_identity<NamedStack> kStack;
  constexpr std::type_identity<BlockOwner> kOwner;
  constexpr std::type_identity<BlockSize> kSize;
  constexpr std::type_identity<DeviceAt> kDevice;
  constexpr std::type_identity<ThreadInfo> kThread;
  constexpr std::type_identity<StreamHandle> kStream;
  constexpr std::type_identity<PoolId> kPool;
  constexpr std::type_identity<BlockAnnotation> kAnnotation;
  v.type("TableRow", "A group of blocks; what it is about is in the field that belongs to `by`.");
  v.field("bytes", row.bytes);
  v.field("block_count", row.blocks);
  v.field("share", row.share, "of allocated_bytes");
  v.part_if(is(kStack) || is(kOwner), HolderKey{std::get_if<NamedStack>(&row.key), std::get_if<BlockOwner>(&row.key)});
  v.field_if(row.stacks > 1, "stack_count", row.stacks,
             "stacks that differ in the called modules alone, such as layers; the one with most bytes is shown");
  v.field_if(is(kSize), "block_bytes", get(kSize).bytes, "by size");
  v.field_if(is(kDevice), "device", to_string(get(kDevice).device), "by device");
  v.field_if(is(kDevice), "at_ns", get(kDevice).at_ns, "by device");
  v.field_if(is(kThread), "tid", get(kThread).tid, "by thread; null: not known");
  v.field_if(is(kThread), "thread_name", known_text(get(kThread).name), "by thread");
  v.field_if(is(kStream), "stream", get(kStream).handle, "by stream: its handle; 0: the default stream");
  v.field_if(is(kPool), "pool", std::vector<std::uint64_t>{get(kPool).first, get(kPool).second},
             "by pool: its id; [0, 0] is the default pool, others belong to CUDA graphs and torch.cuda.MemPool");
  v.field_if(row.most_by.has_value(), "most_by", row.most_by, "by pool: the stack with most of these bytes");
  v.field_if(is(kAnnotation), "annotation", get(kAnnotation).name,
             "by annotation: text on the block, else the innermost range; null: none");
}

template <typename Visitor>
void describe(Visitor& v, const TableSection& section) {
  v.type("TableSection", "The groups on one device; by device, on all.");
  v.field("device", when(section.device.has_value(), [&] { return to_string(section.device->device); }),
          "null by device");
  v.field("at_ns", section.device ? section.device->at_ns : std::nullopt);
  v.field("allocated_bytes", section.allocated_bytes);
  v.field("unrecorded_bytes", section.unrecorded_bytes, "of these, in no recorded block");
  v.field("rows", section.rows, "most bytes first; by device, in the order of devices");
  v.field("other_row_count", section.other_rows);
  v.field("other_bytes", section.other_bytes);
  v.field("other_block_count", section.other_blocks);
}

template <typename Visitor>
void describe(Visitor& v, const Table& table) {
  v.type("Table", "Live allocations at a point in time, in groups.");
  v.part(table.recording);
  v.field("by", named<kGroupByNames>(table.by));
  v.field("sections", table.sections);
}
TIDEMARK_DESCRIBED(Table);

template <typename Visitor>
void describe(Visitor& v, const HiddenNodes& hidden) {
  v.type("HiddenNodes", "Callees that are left out because they hold little, or for their depth.");
  v.field("count", hidden.count);
  v.field("bytes", hidden.bytes);
  v.field("block_count", hidden.blocks);
}

namespace {

// A node and its descendants, which follow it in TreeSection::nodes.
struct Subtree {
  std::span<const TreeNode> nodes;
};

// The trees that follow each other.
std::vector<Subtree> split_trees(std::span<const TreeNode> nodes) {
  std::vector<Subtree> trees;
  while (!nodes.empty()) {
    const auto next = std::find_if(nodes.begin() + 1, nodes.end(),
                                   [&](const TreeNode& node) { return node.depth <= nodes.front().depth; });
    const auto size = static_cast<std::size_t>(next - nodes.begin());
    trees.push_back({nodes.first(size)});
    nodes = nodes.subspan(size);
  }
  return trees;
}

template <typename Visitor>
void describe(Visitor& v, const Subtree& tree) {
  static const TreeNode kNone;
  const TreeNode& node = tree.nodes.empty() ? kNone : tree.nodes.front();
  v.type("TreeNode", "A call, and what it and its callees hold.");
  v.part(node.frame);
  v.field("bytes", node.bytes, "with callees");
  v.field("block_count", node.blocks);
  v.field("own_bytes", node.own_bytes, "of allocations made in this frame itself");
  v.field("own_block_count", node.own_blocks);
  v.field("share", node.share, "of what the section has allocated, or of its blocks");
  v.field("hidden", node.hidden, "callees that are not listed");
  v.field("children", split_trees(tree.nodes.empty() ? tree.nodes : tree.nodes.subspan(1)), "largest first");
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const TreeSection& section) {
  v.type("TreeSection", "The call tree of one device.");
  v.field("device", to_string(section.device));
  v.field("at_ns", section.at_ns);
  v.field("allocated_bytes", section.allocated_bytes);
  v.field("unrecorded_bytes", section.unrecorded_bytes, "of these, in no recorded block");
  v.field("no_stack_bytes", section.no_stack_bytes, "in recorded blocks without a stack");
  v.field("no_stack_block_count", section.no_stack_blocks);
  v.field("block_count", section.blocks, "live recorded blocks");
  v.field("hidden", section.hidden, "roots that are not listed");
  v.field("roots", split_trees(section.nodes), "outermost frames, largest first");
}

template <typename Visitor>
void describe(Visitor& v, const Tree& tree) {
  v.type("Tree", "Live allocations at a point in time, as a call tree.");
  v.part(tree.recording);
  v.field("by", one_of<"bytes", "count">(tree.by_count ? "count" : "bytes"));
  v.field("sections", tree.sections);
}
TIDEMARK_DESCRIBED(Tree);

template <typename Visitor>
void describe(Visitor& v, const TemporaryRow& row) {
  v.type("TemporaryRow", "Short-lived allocations of one stack or owner.");
  v.field("bytes", row.bytes, "the sum of their sizes");
  v.field("share", row.share, "of total_allocated_bytes");
  v.field("allocation_count", row.count);
  v.field("largest_bytes", row.largest_bytes);
  v.part(HolderKey{&row.stack, row.owner ? &*row.owner : nullptr});
}

template <typename Visitor>
void describe(Visitor& v, const TemporaryDevice& device) {
  v.type("TemporaryDevice", "Short-lived allocations on one device, and its peak without them.");
  v.field("device", to_string(device.totals.device));
  v.field("allocation_count", device.totals.allocation_count);
  v.field("total_allocated_bytes", device.totals.total_bytes_allocated, "sum of all allocations");
  v.field("temporary_count", device.count);
  v.field("temporary_bytes", device.bytes, "the sum of their sizes");
  v.field("temporary_share", device.share, "of total_allocated_bytes");
  v.field("peak_allocated_bytes", device.totals.peak_allocated_bytes);
  v.field("peak_allocated_at_ns", device.totals.peak_allocated_at_ns);
  v.field("reduced_peak_bytes", device.reduced_peak_bytes, "had these blocks never been allocated");
  v.field("reduced_peak_at_ns", device.reduced_peak_at_ns, "null: nothing else was allocated");
  v.field("avoidable_peak_bytes", device.avoidable_peak_bytes(), "at most what avoiding them saves");
  v.field("rows", device.rows, "most bytes first");
  v.field("other_row_count", device.other_rows);
  v.field("other_allocation_count", device.other_count);
  v.field("other_bytes", device.other_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const Temporary& temporary) {
  v.type("Temporary", "Short-lived allocations by stack, and the peak without them.");
  v.part(temporary.recording);
  v.field("within", temporary.within, "allocations on the device until the free, at most");
  v.field("by", stack_or(temporary.by));
  v.field("devices", temporary.devices);
}
TIDEMARK_DESCRIBED(Temporary);

}  // namespace tidemark
