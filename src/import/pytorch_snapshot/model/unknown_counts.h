// What a snapshot has beyond what is known here: counted, never fatal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "import/pytorch_snapshot/model/text_table.h"
#include "import/pytorch_snapshot/pickle/word.h"

namespace tidemark::pytorch {

/// Where a key was found.
enum class Scope : std::uint8_t { snapshot, trace, frame, block, segment, annotation, settings };

/// Not thread-safe.
class UnknownCounts {
 public:
  void key(Scope scope, Word key) { ++keys_[std::uint64_t{static_cast<std::uint8_t>(scope)} << 32 | id_of(key)]; }
  void action(Word action) { ++actions_[id_of(action)]; }

  /// "trace.foo" → how many.
  [[nodiscard]] std::map<std::string, std::uint64_t> keys(const TextTable& texts) const {
    static constexpr std::string_view kScopes[] = {"snapshot", "trace",      "frame",   "block",
                                                   "segment",  "annotation", "settings"};
    std::map<std::string, std::uint64_t> named;
    for (const auto& [key, count] : keys_) {
      named[std::string(kScopes[key >> 32]) + "." + text_of(texts, static_cast<std::uint32_t>(key))] += count;
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

  static std::uint32_t id_of(Word word) { return word.tag() == Tag::text ? word.id() : kNoText; }
  static std::string text_of(const TextTable& texts, std::uint32_t text) {
    return text == kNoText ? "(no text)" : std::string(texts[text]);
  }

  std::unordered_map<std::uint64_t, std::uint64_t> keys_;
  std::unordered_map<std::uint32_t, std::uint64_t> actions_;
};

}  // namespace tidemark::pytorch
