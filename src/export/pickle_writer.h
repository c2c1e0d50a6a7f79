// A pickle of plain data (dicts, lists, tuples, numbers, text), written in pieces: docs.python.org/3/library/pickle,
// opcodes in Python's Lib/pickletools.py. Protocol 2, with nothing in it that runs code when it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "export/format.h"

namespace tidemark {

/// Number of a value in the pickle's memo, for references to it.
using PickleMemo = std::uint32_t;

/// Values are written in the order of the calls; a dict's keys and values alternate. Memory grows only with remembered
/// values. Not thread-safe.
class PickleWriter {
 public:
  /// `words` are texts that occur often; they and the output must outlive the writer.
  PickleWriter(std::span<const std::string_view> words, const ByteOutput& output);

  void begin_dict() { put("}("); }  ///< with at least one key
  void end_dict() { put('u'); }
  void begin_list();
  void next_item();  ///< before each item
  void end_list();
  void make_pair() { put('\x86'); }  ///< a tuple of the two values that were written last

  void word(std::size_t index);      ///< one of the words
  void text(std::string_view utf8);  ///< at most 4 GiB, and valid UTF-8; a repetition takes five bytes at most
  void integer(std::uint64_t value);
  void signed_integer(std::int64_t value);
  void real(double value);
  void boolean(bool value) { put(value ? '\x88' : '\x89'); }

  /// Remembers the value that was finished last.
  PickleMemo remember();
  /// Writes a reference to that value: readers get the same object.
  void again(PickleMemo memo);

  /// Whether the output failed; later writes are dropped.
  [[nodiscard]] bool failed() const { return !written_.ok(); }
  /// Ends the pickle; its value is the last one written. Returns the output's error, if there was one.
  Result<void> finish();

 private:
  void put(char byte) { bytes_ += byte; }
  void put(std::string_view bytes) { bytes_ += bytes; }
  void put_number(char opcode, std::uint32_t number);
  void put_little_endian(std::uint64_t value, std::size_t bytes);
  void put_text(std::string_view utf8);
  void flush();

  static constexpr std::uint32_t kBatch = 1000;  // items appended at once, as Python does

  std::span<const std::string_view> words_;
  const ByteOutput& output_;
  std::vector<std::optional<PickleMemo>> written_words_;
  PickleMemo next_memo_ = 0;
  std::unordered_map<std::string, PickleMemo> texts_;
  std::vector<std::uint32_t> batches_;  // items in the open batch of each open list
  std::string bytes_;
  Result<void> written_;
};

}  // namespace tidemark
