#include "model/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tidemark {
namespace {

std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('.'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

/// Below 0, 0 or above: numbers by their value, before text.
int compare_parts(std::string_view left, std::string_view right) {
  if (is_number_part(left) != is_number_part(right)) return is_number_part(left) ? -1 : 1;
  if (!is_number_part(left)) return left.compare(right);
  const auto digits = [](std::string_view number) {
    return number.substr(std::min(number.find_first_not_of('0'), number.size() - 1));
  };
  const std::string_view less = digits(left);
  const std::string_view more = digits(right);
  if (less.size() != more.size()) return less.size() < more.size() ? -1 : 1;
  return less.compare(more);
}

}  // namespace

bool is_number_part(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string module_of(const std::string& tensor) {
  const std::size_t dot = tensor.rfind('.');
  return dot == std::string::npos ? std::string() : tensor.substr(0, dot);
}

std::string layer_of_module(const std::string& module) {
  for (std::size_t begin = 0; begin < module.size();) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = std::string_view(module).substr(begin, end - begin);
    if (is_number_part(part)) return module.substr(0, end);
    begin = end + 1;
  }
  return module;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool name_less(const std::string& left, const std::string& right) {
  std::string_view left_rest = left;
  std::string_view right_rest = right;
  while (!left_rest.empty() && !right_rest.empty()) {
    const int order = compare_parts(take_part(left_rest), take_part(right_rest));
    if (order != 0) return order < 0;
  }
  if (left_rest.empty() != right_rest.empty()) return left_rest.empty();
  return left < right;  // "1" and "01"
}

}  // namespace tidemark
