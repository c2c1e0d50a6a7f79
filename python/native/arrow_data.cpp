#include "arrow_data.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::python {
namespace {

constexpr std::int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

// The owner of a filled-in ArrowSchema or ArrowArray until it is released: as a child of another, or in place.
template <typename Arrow>
struct Children {
  std::vector<std::unique_ptr<Arrow>> owned;
  std::vector<Arrow*> pointers;
  std::unique_ptr<Arrow> dictionary;

  Arrow* add() {
    owned.push_back(std::make_unique<Arrow>());
    pointers.push_back(owned.back().get());
    return pointers.back();
  }
  // A consumer may have moved a child: then it is marked as released.
  ~Children() {
    for (const auto& child : owned) release_one(child.get());
    release_one(dictionary.get());
  }

 private:
  static void release_one(Arrow* arrow) {
    if (arrow != nullptr && arrow->release != nullptr) arrow->release(arrow);
  }
};

template <typename Arrow, typename Private>
void release(Arrow* arrow) {
  delete static_cast<Private*>(arrow->private_data);
  arrow->release = nullptr;
}

struct SchemaData {
  std::string name;
  Children<ArrowSchema> children;
};

SchemaData& begin_schema(const char* format, std::string name, std::int64_t flags, ArrowSchema* out) {
  auto data = std::make_unique<SchemaData>();
  data->name = std::move(name);
  SchemaData& made = *data;
  *out = {format,        made.name.c_str(), nullptr, flags, 0, nullptr, nullptr, release<ArrowSchema, SchemaData>,
          data.release()};
  return made;
}

void fill_column_schema(const Column& column, ArrowSchema* out) {
  const bool is_text = column.kind == Column::Kind::text;
  const char* const number = column.kind == Column::Kind::address ? "L" : "l";
  SchemaData& data = begin_schema(is_text ? "i" : number, column.name, column.nullable ? kNullable : 0, out);
  if (!is_text) return;
  data.children.dictionary = std::make_unique<ArrowSchema>();
  out->dictionary = data.children.dictionary.get();
  begin_schema("u", "", 0, out->dictionary);
}

struct ArrayData {
  SharedTable table;
  std::vector<const void*> buffers;
  std::vector<std::uint8_t> validity;
  std::vector<std::uint64_t> numbers;
  std::vector<std::int32_t> codes;
  std::vector<std::int32_t> offsets;
  std::string characters;
  Children<ArrowArray> children;
};

ArrayData& begin_array(const SharedTable& table, std::size_t length, ArrowArray* out) {
  auto data = std::make_unique<ArrayData>();
  data->table = table;
  ArrayData& made = *data;
  *out = {static_cast<std::int64_t>(length),
          0,
          0,
          0,
          0,
          nullptr,
          nullptr,
          nullptr,
          release<ArrowArray, ArrayData>,
          data.release()};
  return made;
}

void set_buffers(ArrayData& data, std::vector<const void*> buffers, ArrowArray* out) {
  data.buffers = std::move(buffers);
  out->n_buffers = static_cast<std::int64_t>(data.buffers.size());
  out->buffers = data.buffers.data();
}

void fill_words(const SharedTable& table, const std::vector<std::string>& words, ArrowArray* out) {
  ArrayData& data = begin_array(table, words.size(), out);
  std::size_t all = 0;
  for (const std::string& word : words) all += word.size();
  if (all > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw std::length_error("the texts of a column take more than 2 GiB");
  }
  data.offsets.reserve(words.size() + 1);
  data.characters.reserve(all);
  data.offsets.push_back(0);
  for (const std::string& word : words) {
    data.characters += word;
    data.offsets.push_back(static_cast<std::int32_t>(data.characters.size()));
  }
  set_buffers(data, {nullptr, data.offsets.data(), data.characters.data()}, out);
}

// The values of the rows; if one is missing, `validity` gets a bit for each row, set if it has a value.
template <typename Number>
std::int64_t gather(const Column& column, std::size_t begin, std::size_t end, std::vector<Number>& values,
                    std::vector<std::uint8_t>& validity) {
  std::int64_t missing = 0;
  values.resize(end - begin);
  for (std::size_t row = begin; row < end; ++row) {
    const std::size_t index = row - begin;
    if (const auto value = column.value(row)) {
      values[index] = static_cast<Number>(*value);
      continue;
    }
    if (validity.empty()) validity.assign((end - begin + 7) / 8, 0xFF);
    validity[index / 8] &= static_cast<std::uint8_t>(~(1U << index % 8));
    ++missing;
  }
  return missing;
}

void fill_column(const SharedTable& table, const Column& column, std::size_t begin, std::size_t end, ArrowArray* out) {
  ArrayData& data = begin_array(table, end - begin, out);
  if (!column.direct.empty()) return set_buffers(data, {nullptr, column.direct.data() + begin}, out);
  const bool is_text = column.kind == Column::Kind::text;
  out->null_count = is_text ? gather(column, begin, end, data.codes, data.validity)
                            : gather(column, begin, end, data.numbers, data.validity);
  const void* const values = is_text ? static_cast<const void*>(data.codes.data()) : data.numbers.data();
  set_buffers(data, {data.validity.empty() ? nullptr : data.validity.data(), values}, out);
  if (!is_text) return;
  data.children.dictionary = std::make_unique<ArrowArray>();
  fill_words(table, column.words(), data.children.dictionary.get());
  out->dictionary = data.children.dictionary.get();
}

struct StreamData {
  SharedTable table;
  std::size_t rows_in_batch = 0;
  std::size_t next = 0;
  std::string error;
};

// Calls a function that fills in a structure for the consumer, which gets errors as a number and a text.
template <typename Function>
int answer(ArrowArrayStream* stream, const Function& function) noexcept {
  auto& data = *static_cast<StreamData*>(stream->private_data);
  try {
    function(data);
    return 0;
  } catch (const std::bad_alloc&) {
    data.error.clear();
    return ENOMEM;
  } catch (const std::exception& error) {
    data.error = error.what();
    return EINVAL;
  }
}

}  // namespace

void fill_schema(const ColumnTable& table, ArrowSchema* out) {
  SchemaData& data = begin_schema("+s", "", 0, out);
  for (const Column& column : table.columns) fill_column_schema(column, data.children.add());
  out->n_children = static_cast<std::int64_t>(table.columns.size());
  out->children = data.children.pointers.data();
}

void fill_array(const SharedTable& table, std::size_t begin, std::size_t end, ArrowArray* out) {
  ArrowArray made;
  ArrayData& data = begin_array(table, end - begin, &made);
  try {
    set_buffers(data, {nullptr}, &made);
    for (const Column& column : table->columns) fill_column(table, column, begin, end, data.children.add());
  } catch (...) {
    made.release(&made);
    throw;
  }
  made.n_children = static_cast<std::int64_t>(table->columns.size());
  made.children = data.children.pointers.data();
  *out = made;
}

void fill_stream(const SharedTable& table, std::size_t rows_in_batch, ArrowArrayStream* out) {
  auto data = std::make_unique<StreamData>();
  data->table = table;
  data->rows_in_batch = rows_in_batch;
  out->get_schema = [](ArrowArrayStream* stream, ArrowSchema* schema) {
    return answer(stream, [&](StreamData& own) { fill_schema(*own.table, schema); });
  };
  out->get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
    return answer(stream, [&](StreamData& own) {
      array->release = nullptr;  // the end
      if (own.next == own.table->row_count) return;
      const std::size_t end = std::min(own.next + own.rows_in_batch, own.table->row_count);
      fill_array(own.table, own.next, end, array);
      own.next = end;
    });
  };
  out->get_last_error = [](ArrowArrayStream* stream) -> const char* {
    const auto& own = *static_cast<StreamData*>(stream->private_data);
    return own.error.empty() ? nullptr : own.error.c_str();
  };
  out->release = release<ArrowArrayStream, StreamData>;
  out->private_data = data.release();
}

}  // namespace tidemark::python
