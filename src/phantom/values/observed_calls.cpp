#include "phantom/values/observed_calls.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/capture.h"
#include "phantom/gpu/known_bytes.h"
#include "phantom/gpu/memory.h"
#include "phantom/values/host_arithmetic.h"
#include "phantom/values/torch_objects.h"

namespace tidemark::phantom {
namespace {

// at::ObserverContext.
struct ObserverContext {
  virtual ~ObserverContext() = default;
};

// at::RecordFunctionCallback.
struct ObserverCallback {
  std::unique_ptr<ObserverContext> (*start)(const void* record);
  void (*end)(const void* record, ObserverContext* context);
  double sampling = 1;
  std::array<bool, 10> scopes = {true};  // the first: operators
  bool needs_inputs = true;
  bool needs_outputs = true;
  bool needs_ids = false;
};

// A call whose results are unknown, also where operators inside it set its memory before a kernel wrote there.
struct Call : ObserverContext {
  explicit Call(const OperatorFacts& call_facts) : facts(call_facts) {}

  const OperatorFacts& facts;
  const std::uint64_t additions = KnownBytes::additions_of_thread();
  bool delivers_fractions = false;
  std::optional<bool> truth;  // of an unknown value, which counts as zero, compared with a number
};

// A call whose results will be computed when the operator has ended: by then, their memory is there.
struct ComputableCall : Call {
  using Call::Call;

  std::vector<Argument> arguments;
  std::vector<TorchTensor> targets;  // arguments that it changes, on the device
  std::vector<TorchTensor> sources;  // other arguments on the device
  std::vector<std::string> before;   // the content of the targets
  std::int64_t ticket = 0;           // of begin(); 0: none
};

const char* (*record_name)(const void* record) = nullptr;
const char* (*record_overload)(const void* record) = nullptr;

enum class Phase : std::uint8_t { off, checking, on };
std::atomic<Phase> phase = Phase::off;
std::atomic<pid_t> observed_process = 0;
std::atomic<std::int64_t> last_ticket = 0;

// The thread that checks, the call, and its result.
thread_local bool checks = false;
const void* checked_schema = nullptr;
const void* checked_result = nullptr;

void check_inputs(const void* record) {
  constexpr std::size_t kArguments = 6;
  if (!checks || checked_schema != nullptr) return;
  std::array<char, 320> copy{};
  if (!read_safely(record, copy.data(), copy.size())) return;
  const TorchValues inputs = inputs_of(copy.data());
  std::array<TorchValue, kArguments> values{};
  if (inputs.count != kArguments || !read_safely(inputs.first, values.data(), sizeof values)) return;
  if (values[1].tag != kNumberTag || values[1].number != 2.5) return;
  if (values[2].tag != kIntegerTag || values[2].integer != 6 || values[3].tag != kNoneTag) return;
  std::array<char, 40> list{};
  std::array<TorchValue, 2> sizes{};
  if (!read_safely(values[0].object, list.data(), list.size())) return;
  TorchValue shallow = values[0];
  shallow.object = list.data();
  const TorchValues numbers = read_list(shallow);
  if (numbers.count != 2 || !read_safely(numbers.first, sizes.data(), sizeof sizes)) return;
  if (sizes[0].tag != kIntegerTag || sizes[0].integer != 2 || sizes[1].integer != 3) return;
  if (values[4].device.type != kTorchCpu || values[5].boolean) return;
  TorchTags& tags = torch_tags();
  tags.list = values[0].tag;
  tags.device = values[4].tag;
  tags.boolean = values[5].tag;
  tags.text = tags.list - 2;
  checked_schema = schema_of(copy.data());
}

void check_outputs(const void* record) {
  if (!checks || checked_schema == nullptr || checked_result != nullptr || schema_of(record) != checked_schema) return;
  const TorchValues outputs = outputs_of(record);
  TorchValue value{};
  if (outputs.count != 1 || !read_safely(outputs.first, &value, sizeof value)) return;
  if (value.tag == kTensorTag) checked_result = value.object;
}

// The last ones: calls through a stack may have values of others before them.
TorchValues last_of(TorchValues values, std::size_t count) {
  return {values.first + (values.count - count), count};
}

struct AllFacts {
  std::shared_mutex mutex;
  std::unordered_map<const void*, OperatorFacts> by_schema;
};

AllFacts& all_facts() {
  static auto* const kFacts = new AllFacts;
  return *kFacts;
}

const OperatorFacts& ignored_operator() {
  static const OperatorFacts kFacts = [] {
    OperatorFacts facts;
    facts.ignored = true;
    return facts;
  }();
  return kFacts;
}

const OperatorFacts& facts_of(const void* record) {
  const void* const schema = schema_of(record);
  if (schema == nullptr) return ignored_operator();
  AllFacts& all = all_facts();
  {
    const std::shared_lock lock(all.mutex);
    const auto found = all.by_schema.find(schema);
    if (found != all.by_schema.end()) return found->second;
  }
  const auto described = host_arithmetic().describe(record_name(record), record_overload(record));
  const std::lock_guard lock(all.mutex);
  return all.by_schema.emplace(schema, described.value_or(ignored_operator())).first->second;
}

bool is_known(const TorchTensor& tensor) {
  if (known_bytes().knows(tensor.data, static_cast<std::size_t>(tensor.extent()))) return true;  // with its gaps
  const auto pieces = tensor.pieces();
  return pieces && std::all_of(pieces->begin(), pieces->end(),
                               [](const auto& piece) { return known_bytes().knows(piece.first, piece.second); });
}

// Whether its memory is not so scattered that it cannot be marked.
bool can_become_known(const TorchTensor& tensor) {
  return tensor.pieces().has_value() || is_known(tensor);
}

void forget(const TorchTensor& tensor) {
  if (const auto pieces = tensor.pieces()) {
    for (const auto& [start, bytes] : *pieces) known_bytes().forget(start, bytes);
  } else {
    known_bytes().forget(tensor.data, static_cast<std::size_t>(tensor.extent()));
  }
}

void mark_known(const TorchTensor& tensor) {
  const auto pieces = tensor.pieces();
  if (!pieces) return;
  for (const auto& [start, bytes] : *pieces) known_bytes().add(start, bytes);
}

// The arguments of a call as they are before the operator runs.
class Arguments {
 public:
  Arguments(const OperatorFacts& facts, TorchValues values, std::int64_t largest_bytes)
      : facts_(facts), values_(values), largest_bytes_(largest_bytes) {}

  /// Looks at all of them. False if the call has nothing to do with a device.
  bool look() {
    for (std::size_t index = 0; index < values_.count; ++index) {
      const std::uint64_t bit = index < 64 ? std::uint64_t{1} << index : 0;
      look_at(values_.first[index], bit, nullptr);
    }
    return uses_device_;
  }
  [[nodiscard]] bool computable() const { return computable_; }
  /// Copies them. False if one has a type that is not handled.
  bool copy(std::vector<Argument>& to) const {
    to.resize(values_.count);
    for (std::size_t index = 0; index < values_.count; ++index)
      if (!copy_value(values_.first[index], to[index], index)) return false;
    return true;
  }

  std::vector<TorchTensor> targets;
  std::vector<TorchTensor> sources;

 private:
  void look_at(const TorchValue& value, std::uint64_t bit, const TorchValue* list) {
    const TorchTags& tags = torch_tags();
    if (value.tag == kTensorTag) {
      look_at_tensor(value, bit);
    } else if (value.tag == tags.device) {
      uses_device_ = uses_device_ || value.device.type == kTorchCuda;
    } else if (value.tag == tags.list && list == nullptr) {
      for (const TorchValue& item : read_list(value)) {
        if (item.tag == kIntegerTag) break;
        look_at(item, bit, &value);
      }
    }
  }

  void look_at_tensor(const TorchValue& value, std::uint64_t bit) {
    const bool is_target = (facts_.written & bit) != 0;
    const TorchStorage storage = storage_of(value.object);
    if (storage.device != kTorchCuda) {
      if (storage.device != kTorchCpu || is_target || storage.bytes > largest_bytes_) computable_ = false;
      return;
    }
    uses_device_ = true;
    if (!is_target && !computable_) return;
    const auto tensor = read_tensor(value);
    if (!tensor) {
      computable_ = false;
      return;
    }
    const bool needs_value = (facts_.overwritten & bit) == 0;
    bytes_ += tensor->extent();
    if (tensor->extent() > largest_bytes_ || bytes_ > kMostTensors * largest_bytes_ ||
        !(needs_value ? is_known(*tensor) : can_become_known(*tensor)))
      computable_ = false;
    (is_target ? targets : sources).push_back(*tensor);
  }

  bool copy_value(const TorchValue& value, Argument& to, std::size_t index) const {
    const TorchTags& tags = torch_tags();
    if (value.tag == kTensorTag) {
      auto tensor = read_tensor(value);
      if (!tensor) return false;
      to.kind = Argument::Kind::tensor;
      to.tensor = std::move(*tensor);
      if (index < 64 && (facts_.out >> index & 1) != 0) {
        to.tensor.sizes = {0};
        to.tensor.strides = {1};
      }
      if (!to.tensor.on_device) to.bytes.assign(to.tensor.data, to.tensor.data + to.tensor.extent());
    } else if (value.tag == kIntegerTag) {
      to.kind = Argument::Kind::integer;
      to.integer = value.integer;
    } else if (value.tag == kNumberTag) {
      to.kind = Argument::Kind::number;
      to.number = value.number;
    } else if (value.tag == tags.boolean) {
      to.kind = Argument::Kind::boolean;
      to.integer = value.boolean ? 1 : 0;
    } else if (value.tag == tags.text) {
      to.kind = Argument::Kind::text;
      to.text = read_text(value);
    } else if (value.tag == tags.device) {
      to.kind = Argument::Kind::cpu;
    } else if (value.tag == tags.list) {
      to.kind = Argument::Kind::list;
      const TorchValues items = read_list(value);
      to.list.resize(items.count);
      for (std::size_t item = 0; item < items.count; ++item)
        if (items.first[item].tag == tags.list || !copy_value(items.first[item], to.list[item], index)) return false;
    } else {
      return value.tag == kNoneTag;
    }
    return true;
  }

  static constexpr std::int64_t kMostTensors = 4;  // of the largest size, or more smaller ones
  const OperatorFacts& facts_;
  const TorchValues values_;
  const std::int64_t largest_bytes_;
  std::int64_t bytes_ = 0;
  bool uses_device_ = false;
  bool computable_ = true;
};

// Whether the copy is one call of cudaMemcpyAsync, which keeps the bytes itself.
bool is_plain_copy(const TorchValues& values) {
  const auto target = read_tensor(values.first[0]);
  const auto source = read_tensor(values.first[1]);
  return target && source && target->type == source->type && target->sizes == source->sizes &&
         target->strides == source->strides && target->extent() == target->elements() * target->item_bytes;
}

std::optional<bool> compare_zero(std::int64_t comparison, const TorchValue& number) {
  if (number.tag != kIntegerTag && number.tag != kNumberTag) return std::nullopt;
  const double limit = number.tag == kIntegerTag ? static_cast<double>(number.integer) : number.number;
  switch (comparison) {
    case 1:
      return 0 >= limit;
    case 2:
      return 0 > limit;
    case 3:
      return 0 <= limit;
    default:
      return 0 < limit;
  }
}

std::unique_ptr<ObserverContext> before_call(const void* record) {
  const Phase now = phase.load(std::memory_order_relaxed);
  if (now != Phase::on) {
    if (now == Phase::checking) check_inputs(record);
    return nullptr;
  }
  if (getpid() != observed_process.load(std::memory_order_relaxed)) return nullptr;  // a forked child
  const OperatorFacts& facts = facts_of(record);
  if (facts.ignored) return nullptr;
  const TorchValues inputs = inputs_of(record);
  if (inputs.count < facts.arguments) return nullptr;
  const TorchValues values = last_of(inputs, facts.arguments);
  Arguments arguments(facts, values, facts.computable ? host_arithmetic().largest_bytes() : 0);
  if (!arguments.look()) return nullptr;
  const bool is_plain = facts.copies && is_plain_copy(values);
  const bool computable = facts.computable && arguments.computable() && !captures().any() && !is_plain;
  auto call = computable ? std::make_unique<ComputableCall>(facts) : nullptr;
  if (call != nullptr && !arguments.copy(call->arguments)) call.reset();
  if (call != nullptr && facts.reads) {
    call->ticket = ++last_ticket;
    const auto number = host_arithmetic().begin(facts, call->arguments, call->ticket);
    if (!number) call.reset();
    answer_next_read(number);
  }
  // Computed ones keep their content until then: they may share memory with other arguments.
  if (call == nullptr && !is_plain)
    for (const TorchTensor& target : arguments.targets) forget(target);
  if (call == nullptr) {
    if (facts.delivered < 0) {
      auto unknown = std::make_unique<Call>(facts);
      if (facts.comparison != 0) unknown->truth = compare_zero(facts.comparison, values.first[1]);
      return unknown;
    }
    const auto delivered = read_tensor(values.first[facts.delivered]);
    if (!delivered || !delivered->on_device || !delivered->has_fractions()) return nullptr;
    auto delivery = std::make_unique<Call>(facts);
    delivery->delivers_fractions = true;
    read_fractions(true);
    return delivery;
  }
  call->targets = std::move(arguments.targets);
  for (const TorchTensor& target : call->targets)
    call->before.emplace_back(target.data, static_cast<std::size_t>(target.extent()));
  call->sources = std::move(arguments.sources);
  return call;
}

// The tensors among the results of a call, also in lists. False if one is not of the device.
bool read_results(const TorchValues& values, std::vector<TorchTensor>& found) {
  bool all = true;
  for (const TorchValue& value : values) {
    if (value.tag == torch_tags().list) {
      all = read_results(read_list(value), found) && all;
    } else if (value.tag == kTensorTag) {
      const bool is_undefined = storage_of(value.object).device < 0;
      auto tensor = is_undefined ? std::optional(TorchTensor{}) : read_tensor(value);
      if (tensor && (is_undefined || tensor->on_device))
        found.push_back(std::move(*tensor));
      else
        all = false;
    }
  }
  return all;
}

bool can_hold_values(const TorchTensor& tensor) {
  return tensor.type < 0 || (tensor.extent() <= static_cast<std::int64_t>(kKnownCopyBytes) && can_become_known(tensor));
}

bool compute(const ComputableCall& call, const std::vector<TorchTensor>& results) {
  const auto known = [](const auto& tensors) { return std::all_of(tensors.begin(), tensors.end(), is_known); };
  if (call.ticket != 0) return host_arithmetic().finish(call.ticket, results);
  if (call.facts.zeroes) {  // as unknown memory is
    std::for_each(call.targets.begin(), call.targets.end(), forget);
    return true;
  }
  const bool overwrites = call.facts.overwritten == call.facts.written;
  if (!known(call.sources) || (!overwrites && !known(call.targets))) return false;
  // Operators that it was made of may have changed them already.
  for (std::size_t index = 0; index < call.before.size() && !overwrites; ++index)
    std::memcpy(call.targets[index].data, call.before[index].data(), call.before[index].size());
  return host_arithmetic().compute(call.facts, call.arguments, results);
}

void after_call(const void* record, ObserverContext* context) {
  const Phase now = phase.load(std::memory_order_relaxed);
  if (now == Phase::checking) check_outputs(record);
  if (now != Phase::on || context == nullptr) return;
  const auto* const call = static_cast<const Call*>(context);
  if (call->delivers_fractions) return read_fractions(false);
  const auto* const computable = dynamic_cast<const ComputableCall*>(call);
  if (computable == nullptr && !call->truth && call->additions == KnownBytes::additions_of_thread()) return;
  if (call->facts.reads) answer_next_read(std::nullopt);
  const TorchValues outputs = outputs_of(record);
  std::vector<TorchTensor> results;
  const bool all = outputs.count >= call->facts.results && read_results(last_of(outputs, call->facts.results), results);
  const bool can = all && computable != nullptr && std::all_of(results.begin(), results.end(), can_hold_values);
  const bool done = can && compute(*computable, results);
  const auto settle = [can, done](const TorchTensor& tensor) {
    if (can) mark_known(tensor);  // also what an operator changed in part, and then failed
    if (!done) forget(tensor);
  };
  // Those for `out=` are among the results, with their present sizes.
  if (computable != nullptr && call->facts.out == 0)
    std::for_each(computable->targets.begin(), computable->targets.end(), settle);
  std::for_each(results.begin(), results.end(), settle);
  if (call->truth && results.size() == 1 && results[0].elements() == 1) expect_truth(results[0].data, *call->truth);
  if (!done && computable != nullptr && computable->ticket != 0)
    static_cast<void>(host_arithmetic().finish(computable->ticket, {}));
}

}  // namespace

int observe_calls() {
  using Name = const char* (*)(const void*);
  record_name = reinterpret_cast<Name>(torch_function("_ZNK2at14RecordFunction4nameEv"));
  record_overload = reinterpret_cast<Name>(torch_function("_ZNK2at14RecordFunction13overload_nameEv"));
  auto* const add = reinterpret_cast<std::uint64_t (*)(ObserverCallback)>(
      torch_function("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"));
  if (record_name == nullptr || record_overload == nullptr || add == nullptr) return 0;
  checks = true;
  phase.store(Phase::checking);
  add({before_call, after_call});
  return 1;
}

int check_tensor(void* tensor, void* data, std::int64_t bytes) {
  const TorchStorage storage = storage_of(tensor);
  return storage.data == data && storage.bytes == bytes && storage.device == kTorchCpu ? 1 : 0;
}

int check_call(void* result) {
  phase.store(Phase::off);
  auto* const enable = reinterpret_cast<void (*)(bool)>(torch_function("_ZN2at20enableRecordFunctionEb"));
  if (enable == nullptr || checked_result == nullptr || checked_result != result) return 0;
  enable(false);  // on this thread: the arithmetic's own calls
  return 1;
}

void begin_observation() {
  observed_process.store(getpid());
  phase.store(Phase::on);
}

}  // namespace tidemark::phantom
