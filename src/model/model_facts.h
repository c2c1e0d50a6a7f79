// Memory of a stored model, by part. As in tidemark.analyze_model (python/tidemark/model_analysis), as far as a file
// contains it: it does not record which parameters are trained, nor which tensors are buffers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint.h"

namespace tidemark {

struct TensorGroup {
  std::string name;
  std::uint64_t tensor_count = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;

  void add(const StoredTensor& tensor);
};

/// Blocks of a list that take the same: "model.layers.0" to "model.layers.31".
struct RepeatedBlocks {
  std::string first;
  std::string last;
  std::uint64_t count = 0;
  std::uint64_t parameters = 0;  ///< of each
  std::uint64_t bytes = 0;       ///< of each
};

/// A module with an adapter, from the names of the tensors MODULE.lora_A[.ADAPTER].weight and so on.
struct AdaptedModule {
  std::string module;
  std::string adapter;  ///< empty: it has no name
  std::optional<std::uint64_t> rank;
  bool has_both = false;  ///< A and B
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> base_parameters;  ///< of the adapted weight, if the files contain it
};

struct AdapterFacts {
  std::vector<AdaptedModule> modules;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::uint64_t base_parameters = 0;  ///< of all else
  std::uint64_t base_bytes = 0;
  std::map<std::uint64_t, std::uint64_t> bytes_by_rank;
  std::map<std::string, std::uint64_t> target_modules;  ///< how many of each last part of a path
};

struct ModelFacts {
  Checkpoint checkpoint;
  TensorGroup total;
  std::vector<TensorGroup> modules;  ///< each with all that is below it, parents before children; the model is total
  std::vector<TensorGroup> layers;   ///< they add up to the whole, as the next two do
  std::vector<TensorGroup> dtypes;
  std::vector<TensorGroup> shapes;
  std::vector<RepeatedBlocks> blocks;
  std::vector<std::size_t> oversized;  ///< Checkpoint::tensors, largest first
  std::uint64_t oversized_bytes = 0;   ///< from this size on
  std::optional<AdapterFacts> adapters;
};

/// Minimum size of an oversized tensor, as in analyze_model: one block of the allocator, and training allocates at
/// least three more of its size.
inline constexpr std::uint64_t kOversizedBytes = std::uint64_t{100} << 20U;

[[nodiscard]] ModelFacts describe_model(Checkpoint checkpoint, std::uint64_t oversized_bytes = kOversizedBytes);

}  // namespace tidemark
