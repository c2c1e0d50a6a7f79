// What stands beside a checkpoint's files: its index, and the configuration of an adapter.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/checkpoint.h"

namespace tidemark {
namespace {

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
    // An index says what is beside it: nothing elsewhere is opened on its word.
    if (text_of_name.empty() || text_of_name.find('/') != std::string::npos || text_of_name.starts_with("..")) {
      return Error{fmt::format("{}: {} is in {}, which is no name of a file beside it", file, tensor, text_of_name)};
    }
    files[text_of_name].push_back(tensor);
  }
  return files;
}

}  // namespace tidemark
