// Nodes in memory, made by hand.
#include "collect/process/autograd_node.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace tidemark::process {
namespace {

using Words = std::array<std::uint64_t, 160>;

template <typename T>
std::uint64_t address_of(const T& object) {
  return reinterpret_cast<std::uintptr_t>(&object);
}

struct FakeClass {
  FakeClass(const FakeClass* metaclass, const char* name) {
    words[1] = metaclass == nullptr ? address_of(*this) : address_of(*metaclass);
    words[3] = reinterpret_cast<std::uintptr_t>(name);
  }
  Words words{};
};

// A torch::autograd::PyNode of PyTorch 1.13: first comes a pointer to something else than its Python object, though
// that points back too and has data in the places of a class and a name.
TEST(AutogradNode, HasTheClassOfItsPythonObject) {
  const FakeClass type(nullptr, "type");
  const FakeClass metaclass(&type, "FunctionMeta");
  const FakeClass python_class(&metaclass, "ShiftBackward");
  const FakeClass no_class(nullptr, "\xE8\x6C\xFD\x71\x6C\x7F");  // an address
  const std::array<std::uint64_t, 2> type_info = {0, reinterpret_cast<std::uintptr_t>("N5torch8autograd6PyNodeE")};
  const std::array<std::uint64_t, 2> vtable = {address_of(type_info), 0};
  Words node{};
  Words other{};
  Words object{};
  for (Words* one : {&other, &object}) (*one)[7] = address_of(node);
  other[1] = address_of(no_class);
  object[1] = address_of(python_class);
  node[0] = address_of(vtable[1]);
  node[1] = address_of(node);
  node[3] = 17;  // sequence_nr_
  node[6] = 1;   // thread_id_
  node[20] = address_of(other);
  node[25] = address_of(object);

  const NodeClass found = node_class(&node);
  EXPECT_STREQ(found.name, "ShiftBackward");
  EXPECT_TRUE(found.python);
  NodeFields fields{};
  ASSERT_TRUE(read_node(&node, &fields));
  EXPECT_EQ(fields.sequence, 17U);
  EXPECT_EQ(fields.thread, 1U);
}

}  // namespace
}  // namespace tidemark::process
