// Unknown fields of a snapshot, and known fields with values that PyTorch does not write there: counted, never fatal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "import/pytorch_snapshot/model/known.h"
#include "import/pytorch_snapshot/pickle/value.h"
#include "import/pytorch_snapshot/pickle/value_tables.h"

namespace tidemark::pytorch {

/// The object in which a key was found.
enum class Scope : std::uint8_t { snapshot, trace, frame, block, segment, annotation, settings };

inline constexpr std::string_view kScopeNames[] = {"snapshot", "trace",      "frame",   "block",
                                                   "segment",  "annotation", "settings"};

/// Not thread-safe.
class UnknownCounts {
 public:
  void key(Scope scope, PickleValue key) {
    ++keys_[std::uint64_t{static_cast<std::uint8_t>(scope)} << 32 | id_of(key)];
  }
  void action(PickleValue action) { ++actions_[id_of(action)]; }

  /// "trace.foo" → how many.
  [[nodiscard]] std::map<std::string, std::uint64_t> keys(const TextTable& texts) const {
    std::map<std::string, std::uint64_t> named;
    for (const auto& [key, count] : keys_) {
      named[std::string(kScopeNames[key >> 32]) + "." + text_of(texts, static_cast<std::uint32_t>(key))] += count;
    }
    return named;
  }
  [[nodiscard]] std::map<std::string, std::uint64_t> actions(const TextTable& texts) const {
    std::map<std::string, std::uint64_t> named;
    for (const auto& [text, count] : actions_) named[text_of(texts, text)] += count;
    return named;
  }

 private:
  static constexpr std::uint32_t kNoText = 0xFFFF'FFFF;

  static std::uint32_t id_of(PickleValue value) { return value.tag() == Tag::text ? value.id() : kNoText; }
  static std::string text_of(const TextTable& texts, std::uint32_t text) {
    return text == kNoText ? "(no text)" : std::string(texts[text]);
  }

  std::unordered_map<std::uint64_t, std::uint64_t> keys_;
  std::unordered_map<std::uint32_t, std::uint64_t> actions_;
};

/// Not thread-safe.
class InvalidFields {
 public:
  /// For an entry, a block or a frame, by its id; place() resolves its place later.
  void add(Scope scope, Known key, std::uint32_t id) { count(scope, key, Field{0, id, {}}); }
  /// For an object with a known place in the file: "segments[3]".
  void add(Scope scope, Known key, std::string place) { count(scope, key, Field{0, 0, std::move(place)}); }

  [[nodiscard]] bool empty() const { return fields_.empty(); }
  [[nodiscard]] bool has(Scope scope, Known key) const { return fields_.contains({scope, key}); }

  /// `place_of(id)` returns the place of the items of `scope` with these ids; empty if it is unknown. The first place
  /// counts.
  template <typename PlaceOf>
  void place(Scope scope, const PlaceOf& place_of) {
    for (auto& [of, field] : fields_) {
      if (of.first == scope && field.place.empty()) field.place = place_of(field.first);
    }
  }

  /// First place of each field, "device_traces[0][7].addr" → its number of occurrences.
  [[nodiscard]] std::map<std::string, std::uint64_t> names() const {
    std::map<std::string, std::uint64_t> named;
    for (const auto& [of, field] : fields_) {
      const std::string key(kKnownTexts[static_cast<std::size_t>(of.second)]);
      const std::string scope(kScopeNames[static_cast<std::size_t>(of.first)]);
      const bool outermost = of.first == Scope::snapshot;
      named[outermost ? key + field.place : (field.place.empty() ? scope : field.place) + "." + key] += field.count;
    }
    return named;
  }

 private:
  struct Field {
    std::uint64_t count = 0;
    std::uint32_t first = 0;  ///< id of the item, until it has a place
    std::string place;        ///< of the outermost dict: "" or "[3]", behind the key
  };
  void count(Scope scope, Known key, const Field& first) {
    ++fields_.try_emplace({scope, key}, first).first->second.count;
  }

  std::map<std::pair<Scope, Known>, Field> fields_;
};

}  // namespace tidemark::pytorch
