// A model in one or several safetensors files, with the metadata beside them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/safetensors.h"

namespace tidemark {

struct CheckpointFile {
  std::string path;
  std::uint64_t bytes = 0;  ///< of its tensors
  std::uint64_t tensor_count = 0;
};

/// Data from adapter_config.json beside an adapter, as far as it is set.
struct AdapterConfig {
  std::optional<std::uint64_t> rank;
  std::optional<double> alpha;
  std::vector<std::string> target_modules;
  std::optional<std::string> base_model;
};

struct Checkpoint {
  std::string path;  ///< as requested; for several files the first
  std::vector<CheckpointFile> files;
  std::vector<StoredTensor> tensors;            ///< in the order of names, numbers in them as numbers
  std::map<std::string, std::string> metadata;  ///< of the first file
  std::optional<AdapterConfig> adapter;
};

/// Reads headers alone. Each path is a safetensors file, an index of one in several files
/// (model.safetensors.index.json), or a folder with one of the two. All are one model: a tensor that is in two files is
/// an error.
Result<Checkpoint> read_checkpoint(std::span<const std::string> paths);

/// Adapter configuration as PEFT writes it; `file` is named in errors.
Result<AdapterConfig> parse_adapter_config(const std::string& text, const std::string& file);

/// The files of an index, without their folder, in the order of names; each with the tensors that it should have.
Result<std::map<std::string, std::vector<std::string>>> parse_safetensors_index(const std::string& text,
                                                                                const std::string& file);

}  // namespace tidemark
