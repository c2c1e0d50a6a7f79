// Reads PyTorch's objects from memory: arguments and results of operators, and the memory of tensors. Their layout is
// that of PyTorch 2.4 to 2.15 with the C++11 ABI; check_layout() compares it with objects whose content is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark::phantom {

/// c10::Device.
struct TorchDevice {
  std::int8_t type;
  std::int8_t index;
};

/// c10::IValue.
struct TorchValue {
  union {
    const void* object;
    std::int64_t integer;
    double number;
    bool boolean;
    TorchDevice device;
  };
  std::uint32_t tag;
};
static_assert(sizeof(TorchValue) == 16);

inline constexpr std::uint32_t kNoneTag = 0;
inline constexpr std::uint32_t kTensorTag = 1;
inline constexpr std::uint32_t kNumberTag = 3;
inline constexpr std::uint32_t kIntegerTag = 5;

/// Tags whose numbers differ between versions.
struct TorchTags {
  std::uint32_t boolean = 0;
  std::uint32_t text = 0;
  std::uint32_t list = 0;
  std::uint32_t device = 0;
};

/// c10::DeviceType.
inline constexpr std::int8_t kTorchCpu = 0;
inline constexpr std::int8_t kTorchCuda = 1;

struct TorchValues {
  const TorchValue* first = nullptr;
  std::size_t count = 0;

  [[nodiscard]] const TorchValue* begin() const { return first; }
  [[nodiscard]] const TorchValue* end() const { return first + count; }
};

/// The memory of a tensor's storage.
struct TorchStorage {
  char* data = nullptr;
  std::int64_t bytes = 0;
  std::int8_t device = -1;  ///< c10::DeviceType; below 0: the tensor has no memory of its own, as a wrapper of others
};

/// A strided tensor with memory.
struct TorchTensor {
  char* data = nullptr;    ///< of its first element
  std::int32_t type = -1;  ///< c10::ScalarType; below 0: the tensor is not defined
  std::int64_t item_bytes = 0;
  bool on_device = false;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;

  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] bool has_fractions() const { return type >= 5 && type != 11; }  // float16, float32, float64, bfloat16
  /// From `data` to the end of its last element, gaps included.
  [[nodiscard]] std::int64_t extent() const;
  /// Its memory as contiguous pieces: (start, bytes) each. Nullopt if there are more than 4096.
  [[nodiscard]] std::optional<std::vector<std::pair<char*, std::size_t>>> pieces() const;
};

/// Prepares for the PyTorch whose libtorch_cpu is loaded from `path`. False if it lacks a function.
bool open_torch(const char* path);

/// An exported function of libtorch_cpu, or null.
[[nodiscard]] void* torch_function(const char* name);

/// The storage of the tensor at `tensor` (c10::TensorImpl).
[[nodiscard]] TorchStorage storage_of(const void* tensor);
/// Nullopt if the value is not such a tensor, or of a type that is not handled (complex, quantized, eight-bit floats).
[[nodiscard]] std::optional<TorchTensor> read_tensor(const TorchValue& value);
[[nodiscard]] TorchValues read_list(const TorchValue& value);
[[nodiscard]] std::string_view read_text(const TorchValue& value);

/// at::RecordFunction.
[[nodiscard]] const void* schema_of(const void* record);
[[nodiscard]] TorchValues inputs_of(const void* record);
[[nodiscard]] TorchValues outputs_of(const void* record);

/// Set by check_layout() of the observed calls; constant afterwards.
[[nodiscard]] TorchTags& torch_tags();

/// Copies `bytes` of this process's memory. False if they cannot be read.
[[nodiscard]] bool read_safely(const void* from, void* to, std::size_t bytes);

}  // namespace tidemark::phantom
