// Fuzz target of safetensors headers: for any bytes, reading terminates, errors name the file, and accepted tensors add
// up to the size of the data. The same bytes are also read as an index and as an adapter's configuration.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "fuzz/require.h"
#include "model/model_facts.h"
#include "model/safetensors.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

std::uint64_t bytes_of(const std::vector<TensorGroup>& groups) {
  std::uint64_t sum = 0;
  for (const TensorGroup& group : groups) sum += group.bytes;
  return sum;
}

void describe(SafetensorsHeader header, std::uint64_t data_bytes) {
  Checkpoint checkpoint;
  checkpoint.files.push_back({"input", data_bytes, header.tensors.size()});
  checkpoint.tensors = std::move(header.tensors);
  const ModelFacts facts = describe_model(std::move(checkpoint), 16);
  require(facts.total.bytes == data_bytes, "every byte of the data is a tensor's");
  require(bytes_of(facts.layers) == data_bytes, "layers add up");
  require(bytes_of(facts.dtypes) == data_bytes, "types add up");
  require(bytes_of(facts.shapes) == data_bytes, "shapes add up");
  for (const TensorGroup& module : facts.modules) require(module.bytes <= data_bytes, "a module is part of the model");
  if (facts.adapters) {
    require(facts.adapters->bytes + facts.adapters->base_bytes == data_bytes, "adapters and base add up");
  }
}

template <typename Result>
void check_error(const Result& result) {
  require(result.ok() || result.error().message.starts_with("input"), "an error names the file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto length = safetensors_header_bytes(bytes.first(std::min<std::size_t>(size, 8)), size, "input");
  check_error(length);
  if (length) {
    require(*length <= size - 8, "a header is in its file");
    const auto header_bytes = bytes.subspan(8, static_cast<std::size_t>(*length));
    const std::uint64_t data_bytes = size - 8 - *length;
    auto header = parse_safetensors_header(header_bytes, data_bytes, "input");
    check_error(header);
    if (header) describe(std::move(*header), data_bytes);
  }
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_error(parse_adapter_config(text, "input"));
  check_error(parse_safetensors_index(text, "input"));
  return 0;
}
