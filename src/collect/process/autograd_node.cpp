#include "collect/process/autograd_node.h"

#include <errno.h>
#include <string.h>

#include <atomic>
#include <cstddef>

#include "collect/process/filtered.h"
#include "collect/process/key_table.h"
#include "collect/process/python/safe_read.h"

namespace tidemark::process {
namespace {

// torch/csrc/autograd/function.h (node.h), in words:
//
//   up to 2.11   vtable | weak pointer: the node itself, its count | sequence_nr_ | topological_nr_ | flags |
//   thread_id_ 2.15         vtable | reference counts                         | sequence_nr_ | topological_nr_ | flags
//   | thread_id_
constexpr std::size_t kFirstWithWeakPointer = 3;
constexpr std::size_t kFirstWithCounts = 2;
constexpr std::size_t kThreadAfterSequence = 3;

constexpr std::uint64_t kAccumulateGrad = ~std::uint64_t{0};
constexpr std::uint64_t kMaxSequence = std::uint64_t{1} << 40;  // less than any address
constexpr std::uint64_t kMaxThread = std::uint64_t{1} << 32;

// torch::autograd::PyNode. A word of the node, at a place that differs by version, points to its Python object
// (torch/csrc/autograd/python_function.h: THPFunction), which has a word with the node's address.
constexpr char kPythonNode[] = "N5torch8autograd6PyNodeE";
constexpr std::size_t kNodeWords = 128;
constexpr std::size_t kObjectWords = 96;
constexpr std::size_t kTypeOfObject = 1;  // words: PyObject::ob_type
constexpr std::size_t kNameOfType = 3;    // PyTypeObject::tp_name
constexpr std::size_t kMaxName = 256;

std::atomic<std::uint64_t> python_vtable{0};
std::atomic<std::size_t> python_object_word{0};  // 0 = unknown

const std::uint64_t* words_at(std::uint64_t address) noexcept {
  return reinterpret_cast<const std::uint64_t*>(address);
}

const std::uint64_t* words_of(const void* node) noexcept {
  return static_cast<const std::uint64_t*>(node);
}

/// The name of the Python class of a PyNode; null if unknown.
const char* python_name(const void* node) noexcept {
  const std::size_t word = python_object_word.load(std::memory_order_relaxed);
  const std::uint64_t object = word != 0 ? words_of(node)[word] : 0;
  if (object == 0) return nullptr;
  const std::uint64_t type = words_at(object)[kTypeOfObject];
  return reinterpret_cast<const char*>(words_at(type)[kNameOfType]);
}

/// Reads up to `count` words from `address` on: all that are readable, up to the next page, or none.
std::size_t safe_read_words(std::uint64_t address, std::uint64_t* to, std::size_t count) noexcept {
  constexpr std::uint64_t kPage = 4096;
  const auto here = static_cast<std::size_t>((kPage - address % kPage) / sizeof(std::uint64_t));
  const std::size_t first = here < count ? here : count;
  if (!safe_read(to, address, first * sizeof(*to))) return 0;
  const std::uint64_t rest = address + first * sizeof(*to);
  return first == count || !safe_read(to + first, rest, (count - first) * sizeof(*to)) ? first : count;
}

/// Whether `type` is a PyTypeObject: following the class of its class a few times leads to `type`, its own class.
bool is_python_class(std::uint64_t type) noexcept {
  constexpr int kMaxMetaclasses = 8;
  for (int step = 0; step < kMaxMetaclasses; ++step) {
    std::uint64_t metaclass = 0;
    if (!safe_load(type + kTypeOfObject * sizeof(metaclass), &metaclass)) return false;
    if (metaclass == type) {
      std::uint64_t name = 0;
      char text[sizeof("type")];
      return safe_load(type + kNameOfType * sizeof(name), &name) && safe_load(name, &text) &&
             ::memcmp(text, "type", sizeof(text)) == 0;
    }
    type = metaclass;
  }
  return false;
}

bool is_name(std::uint64_t address) noexcept {
  char text[kMaxName];
  for (std::size_t length = 0; length < sizeof(text); ++length) {
    if (!safe_load(address + length, &text[length])) return false;
    if (text[length] == '\0') return length > 0;
    if (text[length] > 0 && text[length] < ' ') return false;
  }
  return false;
}

bool is_object_of(std::uint64_t object, const void* node) noexcept {
  std::uint64_t words[kObjectWords];
  const std::size_t count = safe_read_words(object, words, kObjectWords);
  for (std::size_t index = kTypeOfObject + 1; index < count; ++index) {
    if (words[index] != reinterpret_cast<std::uintptr_t>(node)) continue;
    std::uint64_t name = 0;
    return is_python_class(words[kTypeOfObject]) &&
           safe_load(words[kTypeOfObject] + kNameOfType * sizeof(name), &name) && is_name(name);
  }
  return false;
}

void find_python_object(const void* node) noexcept {
  std::uint64_t words[kNodeWords];
  const auto address = reinterpret_cast<std::uintptr_t>(node);
  const std::size_t count = safe_read_words(address, words, kNodeWords);
  for (std::size_t index = kFirstWithCounts; index < count; ++index) {
    const bool pointer = words[index] >= 0x10000 && words[index] % alignof(void*) == 0 && words[index] != address;
    if (pointer && is_object_of(words[index], node)) {
      python_object_word.store(index, std::memory_order_relaxed);
      return;
    }
  }
}

std::uint64_t hash(const char* text) noexcept {
  std::uint64_t value = 0xCBF29CE484222325;  // FNV-1a
  for (; *text != '\0'; ++text) value = (value ^ static_cast<unsigned char>(*text)) * 0x100000001B3;
  return value;
}

}  // namespace

bool read_node(const void* node, NodeFields* out) noexcept {
  const std::uint64_t* words = words_of(node);
  const bool weak_pointer = words[1] == reinterpret_cast<std::uintptr_t>(node);
  const std::uint64_t* fields = words + (weak_pointer ? kFirstWithWeakPointer : kFirstWithCounts);
  out->class_key = words[0];
  out->sequence = fields[0];
  out->thread = fields[kThreadAfterSequence];
  if (out->class_key == python_vtable.load(std::memory_order_relaxed)) {
    if (const char* name = python_name(node); name != nullptr) out->class_key = mix(out->class_key, hash(name));
  }
  return (out->sequence < kMaxSequence || out->sequence == kAccumulateGrad) && out->thread != 0 &&
         out->thread < kMaxThread;
}

// Before the vtable's functions comes the type_info: its own vtable, and the name (Itanium C++ ABI 2.9.5).
NodeClass node_class(const void* node) noexcept {
  const std::uint64_t vtable = words_of(node)[0];
  const std::uint64_t type_info = *(words_at(vtable) - 1);
  if (type_info == 0) return {"", false};
  const auto* name = reinterpret_cast<const char*>(words_at(type_info)[1]);
  if (*name == '*') ++name;  // of a type local to one library
  if (::strcmp(name, kPythonNode) != 0) return {name, false};
  const int saved = errno;
  if (python_object_word.load(std::memory_order_relaxed) == 0 && !filtered()) find_python_object(node);
  errno = saved;
  python_vtable.store(vtable, std::memory_order_relaxed);
  const char* python = python_name(node);
  return python != nullptr ? NodeClass{python, true} : NodeClass{name, false};
}

}  // namespace tidemark::process
