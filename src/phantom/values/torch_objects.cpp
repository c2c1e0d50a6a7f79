#include "phantom/values/torch_objects.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "base/scoped_fd.h"

namespace tidemark::phantom {
namespace {

// c10::TensorImpl and c10::StorageImpl begin with a table of functions and a counter.
constexpr std::size_t kAfterCounter = 16;
constexpr std::size_t kDeviceInStorage = kAfterCounter + 24;
constexpr std::size_t kBytesInStorage = kAfterCounter + 32;

// at::RecordFunction: its callbacks take 96 bytes, its contexts 48.
constexpr std::size_t kSchemaInRecord = 160;
constexpr std::size_t kInputsInRecord = 208;
constexpr std::size_t kOutputsInRecord = kInputsInRecord + 16 + 56;

constexpr std::size_t kMaximumPieces = 4096;
constexpr int kMaximumDimensions = 64;

// The C functions that PyTorch has for code that AOTInductor compiles: they take the address of an at::Tensor.
struct TensorFunctions {
  using Tensor = const TorchValue*;
  int (*dimensions)(Tensor, std::int64_t*);
  int (*sizes)(Tensor, std::int64_t**);
  int (*strides)(Tensor, std::int64_t**);
  int (*type)(Tensor, std::int32_t*);
  int (*offset)(Tensor, std::int64_t*);
};

TensorFunctions tensor_functions{};
void* torch_library = nullptr;

template <typename T>
T field(const void* object, std::size_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(object) + offset);
}

// By c10::ScalarType; 0 for those that are not handled.
constexpr std::array<std::uint8_t, 16> kItemBytes = {1, 1, 2, 4, 8, 2, 4, 8, 0, 0, 0, 1, 0, 0, 0, 2};

}  // namespace

std::int64_t TorchTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

std::int64_t TorchTensor::extent() const {
  if (elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension)
    last += (sizes[dimension] - 1) * strides[dimension];
  return (last + 1) * item_bytes;
}

std::optional<std::vector<std::pair<char*, std::size_t>>> TorchTensor::pieces() const {
  std::vector<std::pair<char*, std::size_t>> found;
  if (elements() == 0) return found;
  std::vector<std::pair<std::int64_t, std::int64_t>> outer;  // stride and size, from the smallest stride on
  for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension)
    if (sizes[dimension] > 1 && strides[dimension] != 0) outer.emplace_back(strides[dimension], sizes[dimension]);
  std::sort(outer.begin(), outer.end());
  std::int64_t dense = 1;
  std::size_t inner = 0;
  while (inner < outer.size() && outer[inner].first == dense) dense *= outer[inner++].second;
  outer.erase(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(inner));
  found.emplace_back(data, static_cast<std::size_t>(dense * item_bytes));
  for (const auto& [stride, size] : outer) {
    const std::size_t before = found.size();
    if (before * static_cast<std::size_t>(size) > kMaximumPieces) return std::nullopt;
    for (std::int64_t index = 1; index < size; ++index)
      for (std::size_t piece = 0; piece < before; ++piece)
        found.emplace_back(found[piece].first + index * stride * item_bytes, found[piece].second);
  }
  return found;
}

bool open_torch(const char* path) {
  torch_library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (torch_library == nullptr) return false;
  const auto take = [](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(torch_function(name));
    return function != nullptr;
  };
  TensorFunctions& all = tensor_functions;
  return take(all.dimensions, "aoti_torch_get_dim") && take(all.sizes, "aoti_torch_get_sizes") &&
         take(all.strides, "aoti_torch_get_strides") && take(all.type, "aoti_torch_get_dtype") &&
         take(all.offset, "aoti_torch_get_storage_offset");
}

void* torch_function(const char* name) {
  return dlsym(torch_library, name);
}

TorchStorage storage_of(const void* tensor) {
  const auto* const storage = field<const void*>(tensor, kAfterCounter);
  if (storage == nullptr) return {};
  return {field<char*>(storage, kAfterCounter), field<std::int64_t>(storage, kBytesInStorage),
          field<std::int8_t>(storage, kDeviceInStorage)};
}

std::optional<TorchTensor> read_tensor(const TorchValue& value) {
  if (value.tag != kTensorTag) return std::nullopt;
  const TorchStorage storage = storage_of(value.object);
  if (storage.device != kTorchCpu && storage.device != kTorchCuda) return std::nullopt;
  if (storage.data == nullptr && storage.bytes != 0) return std::nullopt;
  TorchTensor tensor;
  const TensorFunctions& all = tensor_functions;
  std::int64_t dimensions = 0;
  std::int64_t offset = 0;
  std::int64_t* sizes = nullptr;
  std::int64_t* strides = nullptr;
  if (all.type(&value, &tensor.type) != 0 || tensor.type < 0 ||
      static_cast<std::size_t>(tensor.type) >= kItemBytes.size() ||
      kItemBytes[static_cast<std::size_t>(tensor.type)] == 0)
    return std::nullopt;
  if (all.dimensions(&value, &dimensions) != 0 || dimensions < 0 || dimensions > kMaximumDimensions ||
      all.sizes(&value, &sizes) != 0 || all.strides(&value, &strides) != 0 || all.offset(&value, &offset) != 0)
    return std::nullopt;
  tensor.item_bytes = kItemBytes[static_cast<std::size_t>(tensor.type)];
  tensor.on_device = storage.device == kTorchCuda;
  tensor.data = storage.data + offset * tensor.item_bytes;
  tensor.sizes.assign(sizes, sizes + dimensions);
  tensor.strides.assign(strides, strides + dimensions);
  return tensor;
}

TorchValues read_list(const TorchValue& value) {
  const auto* const first = field<const TorchValue*>(value.object, kAfterCounter);
  const auto* const last = field<const TorchValue*>(value.object, kAfterCounter + sizeof(void*));
  return {first, static_cast<std::size_t>(last - first)};
}

std::string_view read_text(const TorchValue& value) {
  return *reinterpret_cast<const std::string*>(static_cast<const char*>(value.object) + kAfterCounter);
}

const void* schema_of(const void* record) {
  constexpr std::size_t kWhichInRecord = kSchemaInRecord + sizeof(std::string);
  return field<std::uint8_t>(record, kWhichInRecord) == 1 ? field<const void*>(record, kSchemaInRecord) : nullptr;
}

TorchValues inputs_of(const void* record) {
  return {field<const TorchValue*>(record, kInputsInRecord),
          field<std::size_t>(record, kInputsInRecord + sizeof(void*))};
}

TorchValues outputs_of(const void* record) {
  const auto* const first = field<const TorchValue*>(record, kOutputsInRecord);
  const auto* const last = field<const TorchValue*>(record, kOutputsInRecord + sizeof(void*));
  return {first, static_cast<std::size_t>(last - first)};
}

TorchTags& torch_tags() {
  static TorchTags tags;
  return tags;
}

bool read_safely(const void* from, void* to, std::size_t bytes) {
  // The kernel reads for write(), and fails without a signal.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const ScopedFd reader(ends[0]);
  const ScopedFd writer(ends[1]);
  const auto expected = static_cast<ssize_t>(bytes);
  return ::write(writer.get(), from, bytes) == expected && ::read(reader.get(), to, bytes) == expected;
}

}  // namespace tidemark::phantom
