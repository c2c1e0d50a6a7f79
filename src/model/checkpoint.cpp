#include "model/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/byte_stream.h"
#include "model/names.h"

namespace tidemark {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 26;

Result<std::string> read_text(const std::string& path) {
  auto stream = open_byte_stream(path);
  if (!stream) return stream.error();
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>((*stream)->stored_size(), kMaxTextBytes)), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const auto got = (*stream)->read(std::as_writable_bytes(std::span(text).subspan(filled)));
    if (!got) return got.error();
    if (*got == 0) break;
    filled += *got;
  }
  text.resize(filled);
  return text;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The index or the file in a folder; the error lists the names that were tried.
Result<std::vector<std::string>> files_of_folder(const fs::path& folder) {
  for (const char* const name : {"model.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json",
                                 "model.safetensors", "adapter_model.safetensors"}) {
    if (is_file(folder / name)) return std::vector{(folder / name).string()};
  }
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().extension() == ".safetensors") found.push_back(entry->path().string());
  }
  if (failed) return Error{folder.string() + ": " + failed.message()};
  if (found.empty()) {
    return Error{folder.string() + ": no safetensors file and no index of some (model.safetensors.index.json) in it"};
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Maximum number of parts of all names: far beyond any model's. Each module in a name takes memory.
constexpr std::size_t kMaxParts = 5'000'000;

class CheckpointReader {
 public:
  Result<void> add_file(const std::string& path) {
    Result<SafetensorsHeader> header = read_safetensors(path);
    if (!header) return header.error();
    CheckpointFile file{path, 0, header->tensors.size()};
    for (StoredTensor& tensor : header->tensors) {
      parts_ += static_cast<std::size_t>(std::count(tensor.name.begin(), tensor.name.end(), '.')) + 1;
      if (parts_ > kMaxParts) {
        return Error{fmt::format("{}: the names of its tensors have more than {} parts, which no model's have", path,
                                 kMaxParts)};
      }
      tensor.file = checkpoint_.files.size();
      const auto [known, is_new] = file_of_.try_emplace(tensor.name, tensor.file);
      if (!is_new) {
        return Error{
            fmt::format("{}: has {}, which {} has too", path, tensor.name, checkpoint_.files[known->second].path)};
      }
      file.bytes += tensor.bytes;
      checkpoint_.tensors.push_back(std::move(tensor));
    }
    if (checkpoint_.files.empty()) checkpoint_.metadata = std::move(header->metadata);
    checkpoint_.files.push_back(std::move(file));
    return read_adapter_config(fs::path(path).parent_path() / "adapter_config.json");
  }

  Result<void> add_index(const std::string& path) {
    const auto text = read_text(path);
    if (!text) return text.error();
    const auto files = parse_safetensors_index(*text, path);
    if (!files) return files.error();
    for (const auto& [name, tensors] : *files) {
      const std::string file = (fs::path(path).parent_path() / name).string();
      if (!is_file(file)) return Error{fmt::format("{}: names {}, which is not beside it", path, name)};
      if (auto added = add_file(file); !added) return added;
      for (const std::string& tensor : tensors) {
        const auto known = file_of_.find(tensor);
        if (known == file_of_.end() || known->second + 1 != checkpoint_.files.size()) {
          return Error{fmt::format("{}: says that {} has {}, which it has not", path, name, tensor)};
        }
      }
    }
    return {};
  }

  Checkpoint take() {
    std::sort(checkpoint_.tensors.begin(), checkpoint_.tensors.end(),
              [](const StoredTensor& left, const StoredTensor& right) { return name_less(left.name, right.name); });
    return std::move(checkpoint_);
  }

 private:
  Result<void> read_adapter_config(const fs::path& path) {
    if (checkpoint_.adapter || !is_file(path)) return {};
    const auto text = read_text(path.string());
    if (!text) return text.error();
    auto config = parse_adapter_config(*text, path.string());
    if (!config) return config.error();
    checkpoint_.adapter = std::move(*config);
    return {};
  }

  Checkpoint checkpoint_;
  std::unordered_map<std::string, std::size_t> file_of_;
  std::size_t parts_ = 0;
};

constexpr int kDeepest = 32;

/// The object in the text. Nesting is bounded, because values are freed by recursion.
Result<nlohmann::json> parse_object(const std::string& text, const std::string& file) {
  bool too_deep = false;
  const auto watch = [&too_deep](int depth, nlohmann::json::parse_event_t /*event*/, nlohmann::json& /*value*/) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  nlohmann::json object = nlohmann::json::parse(text, watch, false);
  if (too_deep || !object.is_object()) return Error{file + ": no JSON object in UTF-8"};
  return object;
}

}  // namespace

Result<Checkpoint> read_checkpoint(std::span<const std::string> paths) {
  CheckpointReader reader;
  for (const std::string& path : paths) {
    std::vector<std::string> files{path};
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      auto found = files_of_folder(path);
      if (!found) return found.error();
      files = std::move(*found);
    }
    for (const std::string& file : files) {
      auto added = file.ends_with(".json") ? reader.add_index(file) : reader.add_file(file);
      if (!added) return added.error();
    }
  }
  Checkpoint checkpoint = reader.take();
  if (!paths.empty()) checkpoint.path = paths.front();
  return checkpoint;
}

Result<AdapterConfig> parse_adapter_config(const std::string& text, const std::string& file) {
  const auto object = parse_object(text, file);
  if (!object) return object.error();
  AdapterConfig config;
  if (const auto rank = object->find("r"); rank != object->end() && rank->is_number_unsigned()) {
    config.rank = rank->get<std::uint64_t>();
  }
  if (const auto alpha = object->find("lora_alpha"); alpha != object->end() && alpha->is_number()) {
    config.alpha = alpha->get<double>();
  }
  if (const auto base = object->find("base_model_name_or_path"); base != object->end() && base->is_string()) {
    config.base_model = base->get<std::string>();
  }
  if (const auto targets = object->find("target_modules"); targets != object->end()) {
    if (targets->is_string()) config.target_modules.push_back(targets->get<std::string>());
    if (targets->is_array()) {
      for (const nlohmann::json& target : *targets) {
        if (target.is_string()) config.target_modules.push_back(target.get<std::string>());
      }
    }
  }
  return config;
}

Result<std::map<std::string, std::vector<std::string>>> parse_safetensors_index(const std::string& text,
                                                                                const std::string& file) {
  const auto object = parse_object(text, file);
  if (!object) return object.error();
  const auto weights = object->find("weight_map");
  if (weights == object->end() || !weights->is_object() || weights->empty()) {
    return Error{file + ": no index of a model's files (it lacks weight_map)"};
  }
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [tensor, name] : weights->items()) {
    if (!name.is_string()) return Error{fmt::format("{}: {} is in no file", file, tensor)};
    const auto& text_of_name = name.get_ref<const std::string&>();
    // An index may name only files beside it: no other files are opened.
    if (text_of_name.empty() || text_of_name.find('/') != std::string::npos || text_of_name.starts_with("..")) {
      return Error{fmt::format("{}: {} is in {}, which is no name of a file beside it", file, tensor, text_of_name)};
    }
    files[text_of_name].push_back(tensor);
  }
  return files;
}

}  // namespace tidemark
