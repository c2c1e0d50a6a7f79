// Dotted names of tensors, and the modules and layers in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// Whether this part of a name is a number: "12".
[[nodiscard]] bool is_number_part(std::string_view part);

/// "model.layers.3.mlp" of "model.layers.3.mlp.weight".
[[nodiscard]] std::string module_of(const std::string& tensor);
/// The module up to the first number in its path; without one, the module.
[[nodiscard]] std::string layer_of_module(const std::string& module);
/// "[4096, 11008]".
[[nodiscard]] std::string shape_text(const std::vector<std::uint64_t>& shape);

/// Whether the dotted name comes first: part by part, numeric parts as numbers, before other parts.
[[nodiscard]] bool name_less(const std::string& left, const std::string& right);

}  // namespace tidemark
