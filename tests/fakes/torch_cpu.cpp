// Fake libtorch_cpu: makes nodes.
#include "torch_cpu.h"

#include <atomic>

namespace at {
namespace {

thread_local std::uint64_t next = 0;
thread_local std::uint64_t number = 0;
std::atomic<std::uint64_t> numbers{0};

}  // namespace

namespace sequence_number {

std::uint64_t peek() {
  return next;
}
std::uint64_t get_and_increment() {
  return next++;
}

}  // namespace sequence_number

std::uint64_t RecordFunction::currentThreadId() {
  if (number == 0) number = ++numbers;
  return number;
}

}  // namespace at

namespace torch::autograd {

Node::Node()
    : sequence_nr(at::sequence_number::get_and_increment()), thread_id(at::RecordFunction::currentThreadId()) {}

namespace generated {
struct AddmmBackward0 : Node {};
}  // namespace generated

struct AccumulateGrad : Node {
  AccumulateGrad() { sequence_nr = ~std::uint64_t{0}; }
};

template <typename Function>
struct CppNode : Node {};

/// PyTypeObject: the class of a class is a class.
struct PythonType {
  std::uint64_t references;
  const PythonType* type;
  std::uint64_t size;
  const char* name;
};

struct PyNode : Node {
  /// THPFunction
  struct Object {
    std::uint64_t references;
    const PythonType* type;
    std::uint64_t others[20];
    const PyNode* node;
  };

  explicit PyNode(const PythonType* type) : object(new Object{1, type, {}, this}) {}
  PyNode(const PyNode&) = delete;
  PyNode& operator=(const PyNode&) = delete;
  ~PyNode() override { delete object; }

  Object* object;
};

}  // namespace torch::autograd

struct Twice {};

namespace {

using namespace torch::autograd;

struct PrivateBackward : Node {};

constexpr PythonType kType{1, &kType, 0, "type"};
constexpr PythonType kFunctionMeta{1, &kType, 0, "FunctionMeta"};
constexpr PythonType kScale{1, &kFunctionMeta, 0, "ScaleBackward"};
constexpr PythonType kShift{1, &kFunctionMeta, 0, "ShiftBackward"};

using Held = std::shared_ptr<Node>;

Held make(int kind) {
  switch (kind) {
    case kFakesAddmm:
      return Held(new generated::AddmmBackward0);
    case kFakesAccumulateGrad:
      return Held(new AccumulateGrad);
    case kFakesTemplate:
      return Held(new CppNode<Twice>);
    case kFakesPrivate:
      return Held(new PrivateBackward);
    case kFakesScale:
      return Held(new PyNode(&kScale));
    case kFakesShift:
      return Held(new PyNode(&kShift));
    default: {
      Held strange(new generated::AddmmBackward0);
      strange->thread_id = 0;
      return strange;
    }
  }
}

}  // namespace

void* fakes_make_node(int kind, std::uint64_t thread, std::uint64_t* number) {
  auto* held = new Held(make(kind));
  if (thread != 0) (*held)->thread_id = thread;
  *number = (*held)->sequence_nr;
  return held;
}

extern thread_local void (*fakes_action)(void*);
extern thread_local void* fakes_argument;

void fakes_evaluate(void* node, void (*action)(void*), void* argument) {
  const std::unique_ptr<Held> held(static_cast<Held*>(node));
  auto task = std::make_shared<GraphTask>();
  const auto queue = std::make_shared<ReadyQueue>();
  InputBuffer inputs;
  fakes_action = action;
  fakes_argument = argument;
  Engine().evaluate_function(task, held->get(), inputs, queue);
}

std::uint64_t fakes_next_number() {
  return at::sequence_number::peek();
}
