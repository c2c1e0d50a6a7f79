// The owner of each block: phase, module, component and category, and its confidence.
//
// Derived from data that every recording has: stacks and the modules in their frames, autograd nodes, tensors of model
// and optimizer that the program reported, and lifetimes of blocks. If these are not sufficient, the answer is
// "unknown", never a guess.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/attribution/allocation_origin.h"
#include "analyze/attribution/model_tensors.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// How certain an answer is.
enum class Confidence : std::uint8_t {
  exact,      ///< from the pointer of a tensor, or of the module in a frame of the stack
  estimated,  ///< from the lifetime, from callees in the stack, or from the forward side of an autograd node
  unknown,
};
inline constexpr EnumName<Confidence> kConfidenceNames[] = {
    {Confidence::exact, "exact"}, {Confidence::estimated, "estimated"}, {Confidence::unknown, "unknown"}};

/// Part of a training step in which a block was allocated.
enum class Phase : std::uint8_t { data, forward, backward, recomputation, optimizer, other };
inline constexpr EnumName<Phase> kPhaseNames[] = {
    {Phase::data, "data"},           {Phase::forward, "forward"},
    {Phase::backward, "backward"},   {Phase::recomputation, "recomputation"},
    {Phase::optimizer, "optimizer"}, {Phase::other, "other"}};

enum class Component : std::uint8_t { lora, attention, mlp, embedding, normalization, convolution, head, other };
inline constexpr EnumName<Component> kComponentNames[] = {{Component::lora, "lora"},
                                                          {Component::attention, "attention"},
                                                          {Component::mlp, "mlp"},
                                                          {Component::embedding, "embedding"},
                                                          {Component::normalization, "normalization"},
                                                          {Component::convolution, "convolution"},
                                                          {Component::head, "head"},
                                                          {Component::other, "other"}};

enum class Category : std::uint8_t {
  parameter,
  buffer,
  gradient,
  per_sample_gradient,
  optimizer_state,
  activation,  ///< made in the forward pass and needed until the backward pass
  input,       ///< made by the data phase, or copied to the device outside any module
  temporary,   ///< freed within the call that made it
  workspace,   ///< of a library: cuBLAS, cuDNN, CUB
  copy,        ///< copies of a model: checkpoints saved or loaded, parameters gathered by FSDP, buckets of DDP
  unknown,
};
inline constexpr EnumName<Category> kCategoryNames[] = {{Category::parameter, "parameter"},
                                                        {Category::buffer, "buffer"},
                                                        {Category::gradient, "gradient"},
                                                        {Category::per_sample_gradient, "per_sample_gradient"},
                                                        {Category::optimizer_state, "optimizer_state"},
                                                        {Category::activation, "activation"},
                                                        {Category::input, "input"},
                                                        {Category::temporary, "temporary"},
                                                        {Category::workspace, "workspace"},
                                                        {Category::copy, "copy"},
                                                        {Category::unknown, "unknown"}};

/// Whether memory of this category grows with the batch: activations, inputs, temporaries.
[[nodiscard]] constexpr bool grows_with_batch(Category category) {
  return category == Category::activation || category == Category::temporary || category == Category::input;
}

class ComponentRules;

using ModulePathId = Id<struct ModulePathTag>;

/// A module by name. Objects of the same name (a model that was built twice) are one.
struct ModulePath {
  std::string path;  ///< "model.layers.3.mlp"; of the outermost module the name of its class. Without the parts that
                     ///< wrappers add (_orig_mod, _fsdp_wrapped_module)
  std::string type;  ///< qualified name of its class; empty if unknown
  Component component = Component::other;
};

/// Owner of a block, or of a failed request.
struct Owner {
  ModulePathId module;    ///< module being called; for a tensor of the model, its owner; for a block allocated by an
                          ///< autograd node, the module of the node's forward side. Invalid: none, or unknown
  StackId forward_stack;  ///< for a block allocated by an autograd node: stack of the node's forward side. Invalid:
                          ///< unknown
  Phase phase = Phase::other;
  Component component = Component::other;
  Category category = Category::unknown;
  Confidence category_confidence = Confidence::unknown;
  Confidence module_confidence = Confidence::unknown;
  AllocationOrigin making = AllocationOrigin::nothing_known;  ///< purpose of the allocating code
};

/// A time range of the recording in which the program was in one phase: from the phase's first allocation until before
/// the next phase's first one.
struct PhaseSpan {
  Phase phase = Phase::other;
  std::uint64_t from = 0;  ///< index into Store::live_changes
  std::uint64_t to = 0;    ///< exclusive end; for the last span, after the last allocation
};

/// Read-only, safe to read from several threads.
struct Attribution {
  std::vector<Owner> blocks;           ///< by BlockId
  std::vector<Owner> out_of_memory;    ///< by index into Overview::out_of_memory; category: purpose of the request
  std::vector<TensorInBlock> tensors;  ///< as find_model_tensors() gives them
  std::vector<ModulePath> modules;     ///< by ModulePathId
  std::vector<PhaseSpan> phases;       ///< as phase_spans() gives them

  /// Whether a parameter, gradient, buffer or optimizer state is in this block.
  [[nodiscard]] bool has_model_tensor(BlockId block) const;
};

/// One pass over the stacks and a few over the blocks: some 20 bytes and 100 ns a block.
[[nodiscard]] Attribution attribute_blocks(const Store& store);
/// Uses these component rules instead of the built-in ones.
[[nodiscard]] Attribution attribute_blocks(const Store& store, const ComponentRules& rules);

}  // namespace tidemark
