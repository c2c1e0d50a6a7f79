// What the JSON of results has that have no description yet.
#pragma once

#include <optional>
#include <string>

#include "query/describe/json_object.h"
#include "query/results/common.h"

namespace tidemark {

template <typename T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Null for text that is empty when unknown.
inline Json nullable_text(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace tidemark
