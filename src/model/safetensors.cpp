#include "model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/result.h"

namespace tidemark {

namespace {

/// A tensor as the header has it.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct HeaderEntries {
  std::vector<HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

constexpr std::size_t kMaxDimensions = 64;  // as many as PyTorch's tensors can have

// Far beyond any model's: the two bound the memory for each module in a name.
constexpr std::size_t kLongestName = 1000;
constexpr std::ptrdiff_t kMaxDots = 32;

struct Dtype {
  std::string_view stored;
  std::string_view name;  // in PyTorch
  std::uint64_t bits;
};
constexpr Dtype kDtypes[] = {
    {"BF16", "bfloat16", 16},
    {"F16", "float16", 16},
    {"F32", "float32", 32},
    {"F64", "float64", 64},
    {"I8", "int8", 8},
    {"U8", "uint8", 8},
    {"I16", "int16", 16},
    {"U16", "uint16", 16},
    {"I32", "int32", 32},
    {"U32", "uint32", 32},
    {"I64", "int64", 64},
    {"U64", "uint64", 64},
    {"BOOL", "bool", 8},
    {"C64", "complex64", 64},
    {"F8_E4M3", "float8_e4m3fn", 8},
    {"F8_E5M2", "float8_e5m2", 8},
    {"F8_E8M0", "float8_e8m0fnu", 8},
    {"F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
    {"F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
    {"F6_E2M3", "F6_E2M3", 6},
    {"F6_E3M2", "F6_E3M2", 6},
    {"F4", "F4", 4},
};

/// nlohmann-json calls this for each token; each call returns whether to go on.
class HeaderReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] HeaderEntries take() { return std::move(entries_); }

  bool start_object(std::size_t /*count*/) {
    if (place_ == Place::nothing) return go(Place::names);
    if (place_ == Place::metadata) return go(Place::notes);
    if (place_ == Place::tensor) return go(Place::fields);
    return unexpected("an object");
  }

  bool key(string_t& name) {
    if (place_ == Place::names) {
      if (!names_.insert(name).second) return stop(fmt::format("has {} twice", name));
      name_ = name;
      if (name == "__metadata__") return go(Place::metadata);
      entries_.tensors.push_back({std::move(name), {}, {}, 0, 0});
      seen_ = {};
      return go(Place::tensor);
    }
    if (place_ == Place::notes) {
      name_ = name;
      if (!entries_.metadata.try_emplace(std::move(name)).second)
        return stop("has " + name_ + " twice in __metadata__");
      return go(Place::note);
    }
    constexpr std::string_view kFields[] = {"dtype", "shape", "data_offsets"};
    constexpr Place kPlaces[] = {Place::dtype, Place::shape, Place::offsets};
    const auto field = static_cast<std::size_t>(std::find(std::begin(kFields), std::end(kFields), name) - kFields);
    if (field == std::size(kFields)) return stop(fmt::format("has a field {} of {}, which is not known", name, name_));
    if (std::exchange(seen_[field], true)) return stop(fmt::format("has the {} of {} twice", name, name_));
    return go(kPlaces[field]);
  }

  bool end_object() {
    if (place_ == Place::names) return go(Place::finished);
    if (place_ == Place::notes) return go(Place::names);
    if (!(seen_[0] && seen_[1] && seen_[2])) return stop("lacks dtype, shape or data_offsets of " + name_);
    return go(Place::names);
  }

  bool start_array(std::size_t /*count*/) {
    if (place_ == Place::shape) return go(Place::sizes);
    if (place_ != Place::offsets) return unexpected("a list");
    offset_count_ = 0;
    return go(Place::offset_values);
  }

  bool end_array() {
    if (place_ == Place::offset_values && offset_count_ != 2) return unexpected("no pair");
    return go(Place::fields);
  }

  bool string(string_t& value) {
    if (place_ == Place::note) {
      entries_.metadata[name_] = std::move(value);
      return go(Place::notes);
    }
    if (place_ != Place::dtype) return unexpected("text");
    entries_.tensors.back().dtype = std::move(value);
    return go(Place::fields);
  }

  bool number_unsigned(number_unsigned_t value) {
    HeaderEntry* const entry = entries_.tensors.empty() ? nullptr : &entries_.tensors.back();
    if (entry != nullptr && place_ == Place::sizes) {
      if (entry->shape.size() == kMaxDimensions) return stop(fmt::format("has more than 64 dimensions of {}", name_));
      entry->shape.push_back(value);
      return true;
    }
    if (entry == nullptr || place_ != Place::offset_values || offset_count_ == 2) return unexpected("a number");
    (offset_count_++ == 0 ? entry->begin : entry->end) = value;
    return true;
  }

  bool number_integer(number_integer_t /*value*/) { return unexpected("a negative number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return unexpected("a fraction"); }
  bool null() { return unexpected("null"); }
  bool boolean(bool /*value*/) { return unexpected("true or false"); }
  bool binary(binary_t& /*value*/) { return unexpected("bytes"); }

  template <typename Exception>
  bool parse_error(std::size_t position, const std::string& /*token*/, const Exception& /*error*/) {
    return stop(fmt::format("is not JSON in UTF-8, at byte {}", position));
  }

 private:
  enum class Place : unsigned char {
    nothing,
    names,
    metadata,
    notes,
    note,
    tensor,
    fields,
    dtype,
    shape,
    sizes,
    offsets,
    offset_values,
    finished
  };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool unexpected(const char* what) {
    return stop(name_.empty() ? fmt::format("has {} where its list of tensors should be", what)
                              : fmt::format("has {} in {} where none should be", what, name_));
  }

  Place place_ = Place::nothing;
  HeaderEntries entries_;
  std::unordered_set<std::string> names_;
  std::string name_;  // the last tensor's, or note's
  std::array<bool, 3> seen_{};
  std::size_t offset_count_ = 0;
  std::string problem_;
};

// Fails for invalid UTF-8, duplicate keys, and anything that does not belong into a header.
Result<HeaderEntries> parse_header_json(std::span<const std::byte> header, const std::string& file) {
  const auto* const text = reinterpret_cast<const char*>(header.data());
  HeaderReader reader;
  const bool whole = nlohmann::json::sax_parse(text, text + header.size(), &reader);
  if (!whole) return Error{fmt::format("{}: its header {}", file, reader.problem())};
  return reader.take();
}

// Takes the entry's name and shape. Fails if its type is unknown, or its bytes do not match type and shape.
Result<StoredTensor> stored_tensor(HeaderEntry& entry, const std::string& file) {
  if (entry.name.size() > kLongestName || std::count(entry.name.begin(), entry.name.end(), '.') > kMaxDots) {
    return Error{fmt::format("{}: a tensor's name is longer than {} bytes, or has more than {} dots: {}", file,
                             kLongestName, kMaxDots, entry.name)};
  }
  const auto* const dtype = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                         [&entry](const Dtype& known) { return known.stored == entry.dtype; });
  if (dtype == std::end(kDtypes)) {
    return Error{fmt::format("{}: {} is of type {}, which is not known", file, entry.name, entry.dtype)};
  }
  StoredTensor tensor;
  tensor.elements = 1;
  std::uint64_t bits = dtype->bits;
  bool fits = true;
  // A size of 0 makes the whole 0, however large the others are.
  if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) {
    tensor.elements = bits = 0;
  } else {
    for (const std::uint64_t size : entry.shape) {
      fits = fits && !__builtin_mul_overflow(bits, size, &bits);
      if (fits) tensor.elements *= size;
    }
  }
  if (!fits) return Error{fmt::format("{}: the shape of {} is larger than any memory", file, entry.name)};
  if (bits % 8 != 0) return Error{fmt::format("{}: {} ends within a byte", file, entry.name)};
  tensor.bytes = bits / 8;
  if (entry.end < entry.begin || entry.end - entry.begin != tensor.bytes) {
    return Error{fmt::format("{}: {} lies at bytes {} to {} of the data, but its type and shape take {} bytes", file,
                             entry.name, entry.begin, entry.end, tensor.bytes)};
  }
  tensor.name = std::move(entry.name);
  tensor.dtype = dtype->name;
  tensor.shape = std::move(entry.shape);
  return tensor;
}

/// Offsets as the header has them, beside its tensor.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const StoredTensor* tensor = nullptr;
};

Result<void> fill(std::span<std::byte> out, ByteStream& stream) {
  while (!out.empty()) {
    const auto got = stream.read(out);
    if (!got) return got.error();
    if (*got == 0) return Error{stream.name() + ": became shorter while it was read"};
    out = out.subspan(*got);
  }
  return {};
}

/// Every byte of the data belongs to one tensor.
Result<void> check_extents(std::vector<Extent> extents, std::uint64_t data_bytes, const std::string& file) {
  std::sort(extents.begin(), extents.end(), [](const Extent& left, const Extent& right) {
    return left.begin != right.begin ? left.begin < right.begin : left.end < right.end;
  });
  std::uint64_t reached = 0;
  for (const Extent& extent : extents) {
    if (extent.begin < reached) {
      return Error{fmt::format("{}: {} begins at byte {} of the data, in the tensor before it, which ends at {}", file,
                               extent.tensor->name, extent.begin, reached)};
    }
    if (extent.begin > reached) {
      return Error{fmt::format("{}: bytes {} to {} of the data belong to no tensor (before {})", file, reached,
                               extent.begin, extent.tensor->name)};
    }
    reached = extent.end;
    if (reached > data_bytes) {
      return Error{
          fmt::format("{}: {} ends at byte {} of the data, of which there are {}; the file may not have been "
                      "downloaded or copied whole",
                      file, extent.tensor->name, reached, data_bytes)};
    }
  }
  if (reached < data_bytes) {
    return Error{fmt::format("{}: {} bytes after the last tensor belong to none", file, data_bytes - reached)};
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> header, std::uint64_t data_bytes,
                                                   const std::string& file) {
  Result<HeaderEntries> entries = parse_header_json(header, file);
  if (!entries) return entries.error();
  SafetensorsHeader result;
  result.metadata = std::move(entries->metadata);
  result.tensors.reserve(entries->tensors.size());  // extents point into it
  std::vector<Extent> extents;
  extents.reserve(entries->tensors.size());
  for (HeaderEntry& entry : entries->tensors) {
    Result<StoredTensor> tensor = stored_tensor(entry, file);
    if (!tensor) return tensor.error();
    result.tensors.push_back(std::move(*tensor));
    extents.push_back({entry.begin, entry.end, &result.tensors.back()});
  }
  const Result<void> status = check_extents(std::move(extents), data_bytes, file);
  if (!status) return status.error();
  return result;
}

Result<std::uint64_t> safetensors_header_bytes(std::span<const std::byte> start, std::uint64_t file_bytes,
                                               const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with("version ")) {
    return Error{file + ": a pointer of Git LFS instead of the file (`git lfs pull` fetches it)"};
  }
  constexpr std::size_t kPrefix = 8;
  if (start.size() < kPrefix || file_bytes < kPrefix + 2) {
    return Error{fmt::format("{}: not a safetensors file: {} bytes are too few for a header", file, file_bytes)};
  }
  std::uint64_t length = 0;
  for (std::size_t byte = kPrefix; byte-- > 0;) length = length << 8U | std::to_integer<std::uint64_t>(start[byte]);
  if (length > kMaxHeaderBytes && (text.starts_with("PK\x03\x04") || text.starts_with("\x80"))) {
    return Error{file +
                 ": a checkpoint that torch.save wrote, not a safetensors file (tidemark.analyze_model takes what "
                 "torch.load returns)"};
  }
  if (length > kMaxHeaderBytes) {
    return Error{
        fmt::format("{}: not a safetensors file: its first 8 bytes say that its header has {} bytes, and {} "
                    "are the most",
                    file, length, kMaxHeaderBytes)};
  }
  if (length > file_bytes - kPrefix) {
    return Error{
        fmt::format("{}: ends in its header, which should have {} bytes; the file may not have been "
                    "downloaded or copied whole",
                    file, length)};
  }
  return length;
}

Result<SafetensorsHeader> read_safetensors(const std::string& path) {
  auto stream = open_byte_stream(path);
  if (!stream) return stream.error();
  const std::uint64_t file_bytes = (*stream)->stored_size();
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(8, file_bytes)));
  if (auto filled = fill(bytes, **stream); !filled) return filled.error();
  const auto length = safetensors_header_bytes(bytes, file_bytes, path);
  if (!length) return length.error();
  bytes.resize(static_cast<std::size_t>(*length));
  if (auto filled = fill(bytes, **stream); !filled) return filled.error();
  return parse_safetensors_header(bytes, file_bytes - 8 - *length, path);
}

}  // namespace tidemark
