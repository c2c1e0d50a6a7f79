#include "report/common/json.h"

#include <utility>

#include "report/common/json_objects.h"

namespace tidemark {
namespace {

Json hidden_json(const HiddenNodes& hidden) {
  return {{"count", hidden.count}, {"bytes", hidden.bytes}, {"block_count", hidden.blocks}};
}

// Nests the flat list again; as deep as TreeOptions::kMaxDepth. Takes the nodes of `depth` from *next on.
Json nodes_json(const std::vector<TreeNode>& nodes, std::size_t* next, std::uint32_t depth) {
  Json list = Json::array();
  while (*next < nodes.size() && nodes[*next].depth == depth) {
    const TreeNode& node = nodes[(*next)++];
    Json object = frame_json(node.frame);
    object["bytes"] = node.bytes;
    object["block_count"] = node.blocks;
    object["own_bytes"] = node.own_bytes;
    object["own_block_count"] = node.own_blocks;
    object["share"] = node.share;
    object["hidden"] = hidden_json(node.hidden);
    object["children"] = nodes_json(nodes, next, depth + 1);
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace

Json to_object(const Tree& tree) {
  Json object = recording_json(tree.recording);
  object["by"] = tree.by_count ? "count" : "bytes";
  object["sections"] = Json::array();
  for (const TreeSection& section : tree.sections) {
    std::size_t next = 0;
    object["sections"].push_back({{"device", to_string(section.device)},
                                  {"at_ns", nullable(section.at_ns)},
                                  {"allocated_bytes", section.allocated_bytes},
                                  {"unrecorded_bytes", section.unrecorded_bytes},
                                  {"no_stack_bytes", section.no_stack_bytes},
                                  {"no_stack_block_count", section.no_stack_blocks},
                                  {"block_count", section.blocks},
                                  {"hidden", hidden_json(section.hidden)},
                                  {"roots", nodes_json(section.nodes, &next, 0)}});
  }
  return object;
}

std::string to_json(std::span<const Tree> trees) {
  return print_all(trees);
}

}  // namespace tidemark
