// Interning, definitions, and failing writes.
#include "trace/writer.h"

#include <gmock/gmock.h>

#include "trace/format.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

TEST(Writer, DefinitionsComeBackAsTheyWere) {
  Bytes bytes;
  ProcessInfo process;
  process.pid = 1;
  process.rank = 3;
  process.local_rank = 1;
  process.world_size = 8;
  process.parent_pid = 99;
  process.hostname = "node";
  process.stack_mode = "both";
  process.start_wall_ns = 1'795'168'301'328'464'000;
  const auto writer = write_to(&bytes, process);
  const StringId path = writer->string("/lib/x.so");
  EXPECT_EQ(writer->string("/lib/x.so"), path);
  EXPECT_NE(writer->string("/lib/x.s"), path);
  const ModuleId module = writer->module({path, "00ff", 0xFFFF'FFFF'0000'0000});
  EXPECT_EQ(writer->module({path, "00ff", 0xFFFF'FFFF'0000'0000}), module);
  EXPECT_NE(writer->module({path, "00fe", 0xFFFF'FFFF'0000'0000}), module);
  Location python{.file = path, .function = writer->string("f"), .line = 0xFFFF'FFFF, .module = {}, .offset = 0};
  const LocationId line = writer->location(python);
  EXPECT_EQ(writer->location(python), line);
  python.line = 1;
  EXPECT_NE(writer->location(python), line);
  Location native;
  native.kind = Location::Kind::native;
  native.module = module;
  native.offset = 0x1234;
  const LocationId address = writer->location(native);
  EXPECT_EQ(writer->location(native), address);
  const StackId root = writer->stack({}, line);
  const StackId leaf = writer->stack(root, address);
  EXPECT_EQ(writer->stack(root, address), leaf);
  EXPECT_NE(writer->stack({}, address), leaf);
  EXPECT_NE(writer->thread({5, "a"}), writer->thread({5, "a"}));
  process.torch_version = "2.15.0";
  process.allocator_settings = "";
  writer->process(process);
  writer->loss({Loss::Kind::disk, 1, "quota"});
  writer->loss({Loss::Kind::ring_full, 5, ""});
  writer->loss({Loss::Kind::disk, 2, "quota"});
  const ThreadId thread = writer->thread({6, "b"});
  const StringId epoch = writer->string("epoch");
  writer->mark({Mark::Kind::range_begin, 40, epoch, thread});
  writer->mark({Mark::Kind::range_end, 0xFFFF'FFFF'FFFF'FFFF, epoch, {}});
  writer->mark({Mark::Kind::point, 0, {}, {}});
  ASSERT_TRUE(writer->finish({77, false}).ok());

  const Definitions read = read_all(bytes).definitions;
  ASSERT_EQ(read.marks.size(), 3U);
  EXPECT_EQ(read.marks[0].kind, Mark::Kind::range_begin);
  EXPECT_EQ(read.marks[0].time_ns, 40U);
  EXPECT_EQ(read.strings.at(read.marks[0].name.value), "epoch");
  EXPECT_EQ(read.marks[0].thread, thread);
  EXPECT_EQ(read.marks[1].kind, Mark::Kind::range_end);
  EXPECT_EQ(read.marks[1].time_ns, 0xFFFF'FFFF'FFFF'FFFFU);
  EXPECT_FALSE(read.marks[1].thread.valid());
  EXPECT_EQ(read.marks[2].kind, Mark::Kind::point);
  EXPECT_FALSE(read.marks[2].name.valid());
  EXPECT_EQ(read.process.pid, 1);
  EXPECT_EQ(read.process.parent_pid, 99);
  EXPECT_EQ(read.process.rank, 3);
  EXPECT_EQ(read.process.local_rank, 1);
  EXPECT_EQ(read.process.world_size, 8);
  EXPECT_EQ(read.process.hostname, "node");
  EXPECT_EQ(read.process.stack_mode, "both");
  EXPECT_EQ(read.process.torch_version, "2.15.0");
  EXPECT_EQ(read.process.allocator_settings, "") << "the defaults, not unknown";
  EXPECT_EQ(read.process.start_wall_ns, 1'795'168'301'328'464'000U);
  EXPECT_EQ(read.strings, (std::vector<std::string>{"/lib/x.so", "/lib/x.s", "f", "epoch"}));
  ASSERT_EQ(read.modules.size(), 2U);
  EXPECT_EQ(read.modules[0].path, path);
  EXPECT_EQ(read.modules[0].build_id, "00ff");
  EXPECT_EQ(read.modules[1].load_address, 0xFFFF'FFFF'0000'0000U);
  ASSERT_EQ(read.locations.size(), 3U);
  EXPECT_EQ(read.locations[0].line, 0xFFFF'FFFFU);
  EXPECT_EQ(read.locations[0].function, StringId{2});
  EXPECT_EQ(read.locations[2].kind, Location::Kind::native);
  EXPECT_EQ(read.locations[2].module, module);
  EXPECT_EQ(read.locations[2].offset, 0x1234U);
  ASSERT_EQ(read.stacks.size(), 3U);
  EXPECT_FALSE(read.stacks[0].parent.valid());
  EXPECT_EQ(read.stacks[1].parent, root);
  EXPECT_EQ(read.stacks[1].location, address);
  ASSERT_EQ(read.threads.size(), 3U);
  EXPECT_EQ(read.threads[1].tid, 5);
  ASSERT_EQ(read.losses.size(), 2U);
  EXPECT_EQ(read.losses[0].kind, Loss::Kind::disk);
  EXPECT_EQ(read.losses[0].count, 3U);
  EXPECT_EQ(read.losses[0].text, "quota");
  ASSERT_TRUE(read.end.has_value());
  EXPECT_EQ(read.end->time_ns, 77U);
  EXPECT_FALSE(read.end->process_exited);
}

TEST(Writer, ModulesTensorsAndAutogradNodesComeBackAsTheyWere) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  const NnModuleId model = writer->nn_module({0x7f00});
  const NnModuleId layer = writer->nn_module({0x7f80});
  EXPECT_NE(writer->nn_module({0x7f80}), layer);  // another object at the address of one that died
  const StringId path = writer->string("layers.0");
  const StringId type = writer->string("torch.nn.modules.linear.Linear");
  writer->nn_module_name({layer, model, path, type});
  Location call{.file = path, .function = type, .line = 7, .module = {}};
  const LocationId unnamed = writer->location(call);
  call.nn_module = layer;
  const LocationId named = writer->location(call);
  EXPECT_NE(named, unnamed);
  EXPECT_EQ(writer->location(call), named);
  call.nn_module = model;
  EXPECT_NE(writer->location(call), named);
  const ThreadId thread = writer->thread({5, "a"});
  const AutogradNodeId node = writer->autograd_node({type, thread});
  EXPECT_EQ(writer->autograd_node({type, thread}), node);
  EXPECT_NE(writer->autograd_node({type, {}}), node);
  ModelTensor tensor;
  tensor.role = ModelTensor::Role::optimizer_state;
  tensor.device = {DeviceType::cuda, 7};
  tensor.requires_grad = true;
  tensor.time_ns = 99;
  tensor.address = 0xFFFF'0000'0000'0200;
  tensor.storage_bytes = 4096;
  tensor.bytes = 48;
  tensor.module = layer;
  tensor.name = path;
  tensor.state = type;
  tensor.shape = {3, 0, 4};
  writer->tensor(tensor);
  ASSERT_TRUE(writer->finish({}).ok());

  const Definitions read = read_all(bytes).definitions;
  ASSERT_EQ(read.nn_modules.size(), 3U);
  EXPECT_EQ(read.nn_modules[2].address, 0x7f80U);
  ASSERT_EQ(read.nn_module_names.size(), 1U);
  EXPECT_EQ(read.nn_module_names[0].module, layer);
  EXPECT_EQ(read.nn_module_names[0].root, model);
  EXPECT_EQ(read.nn_module_names[0].path, path);
  EXPECT_EQ(read.nn_module_names[0].type, type);
  ASSERT_EQ(read.locations.size(), 3U);
  EXPECT_FALSE(read.locations[0].nn_module.valid());
  EXPECT_EQ(read.locations[1].nn_module, layer);
  EXPECT_EQ(read.locations[1].line, 7U);
  ASSERT_EQ(read.autograd_nodes.size(), 2U);
  EXPECT_EQ(read.autograd_nodes[0].type, type);
  EXPECT_EQ(read.autograd_nodes[0].forward_thread, thread);
  ASSERT_EQ(read.tensors.size(), 1U);
  EXPECT_EQ(read.tensors[0].role, ModelTensor::Role::optimizer_state);
  EXPECT_EQ(read.tensors[0].device, (Device{DeviceType::cuda, 7}));
  EXPECT_TRUE(read.tensors[0].requires_grad);
  EXPECT_EQ(read.tensors[0].time_ns, 99U);
  EXPECT_EQ(read.tensors[0].address, 0xFFFF'0000'0000'0200U);
  EXPECT_EQ(read.tensors[0].storage_bytes, 4096U);
  EXPECT_EQ(read.tensors[0].bytes, 48U);
  EXPECT_EQ(read.tensors[0].module, layer);
  EXPECT_EQ(read.tensors[0].name, path);
  EXPECT_EQ(read.tensors[0].state, type);
  EXPECT_FALSE(read.tensors[0].dtype.valid());
  EXPECT_EQ(read.tensors[0].shape, (std::vector<std::uint64_t>{3, 0, 4}));
}

TEST(Writer, CompiledCodeComesBackAsItWas) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  Location line{.file = writer->string("model.py"), .function = writer->string("forward"), .line = 7, .module = {}};
  const LocationId plain = writer->location(line);
  line.graph = CompiledGraph::forward;
  const LocationId forward = writer->location(line);
  line.graph = CompiledGraph::backward;
  const LocationId backward = writer->location(line);
  line.source_nodes = writer->string("x, linear_1");
  const LocationId named = writer->location(line);
  EXPECT_EQ(writer->location(line), named);
  line.graph = static_cast<CompiledGraph>(77);  // a later version's
  const LocationId later = writer->location(line);
  ASSERT_TRUE(writer->finish({}).ok());

  const Definitions read = read_all(bytes).definitions;
  ASSERT_EQ(read.locations.size(), 5U);
  EXPECT_EQ(read.locations[plain.value].graph, CompiledGraph::none);
  EXPECT_EQ(read.locations[forward.value].graph, CompiledGraph::forward);
  EXPECT_EQ(read.locations[backward.value].graph, CompiledGraph::backward);
  EXPECT_FALSE(read.locations[backward.value].source_nodes.valid());
  EXPECT_EQ(read.locations[named.value].graph, CompiledGraph::backward);
  EXPECT_EQ(read.strings[read.locations[named.value].source_nodes.value], "x, linear_1");
  EXPECT_FALSE(read.locations[named.value].nn_module.valid());
  EXPECT_EQ(read.locations[later.value].graph, CompiledGraph::unknown);
}

TEST(Writer, ManyDefinitionsAreSplitOverFrames) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  const std::string long_text(3 * format::kMaxStringBytes, 'x');
  for (int n = 0; n < 40; ++n) writer->string(std::to_string(n) + long_text);
  ASSERT_TRUE(writer->finish({}).ok());
  const Recording read = read_all(bytes);
  EXPECT_EQ(read.lost(Loss::Kind::torn_tail), 0U);
  ASSERT_EQ(read.definitions.strings.size(), 40U);
  EXPECT_EQ(read.definitions.strings[39], ("39" + long_text).substr(0, format::kMaxStringBytes));
}

TEST(Writer, IdsThatWereNeverDefinedCountAsNone) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  Event event = allocate(1, 2, 3);
  event.stack = {0};
  event.thread = {5};
  ASSERT_TRUE(writer->event(event).ok());
  ASSERT_TRUE(writer->finish({}).ok());
  const Recording read = read_all(bytes);
  ASSERT_EQ(read.events.size(), 1U);
  EXPECT_EQ(describe(read.events[0]), "kind 0 t 1 thread - cpu address 2 size 3 slot 0 stack -");
}

/// Fails from the given call on, and counts the calls.
class FailingSink final : public Sink {
 public:
  FailingSink(int good_calls, int* calls) : good_calls_(good_calls), calls_(calls) {}
  Result<void> append(std::span<const std::byte>) override {
    return ++*calls_ > good_calls_ ? Result<void>(Error{"disk full"}) : Result<void>();
  }

 private:
  int good_calls_;
  int* calls_;
};

TEST(Writer, AFailureIsReportedOnceAndThenTheSinkIsLeftAlone) {
  int calls = 0;
  auto created = TraceWriter::create(std::make_unique<FailingSink>(1, &calls), {});
  ASSERT_TRUE(created.ok());
  TraceWriter& writer = **created;
  ASSERT_TRUE(writer.event(allocate(1, 2, 3)).ok());
  const Result<void> failed = writer.flush();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "disk full");
  EXPECT_EQ(calls, 2);
  for (std::uint64_t n = 0; n < 40'000; ++n) ASSERT_TRUE(writer.event(allocate(n, n, n)).ok());
  EXPECT_TRUE(writer.flush().ok());
  EXPECT_TRUE(writer.finish({}).ok());
  EXPECT_FALSE(writer.string("late").valid());
  EXPECT_EQ(writer.bytes_pending(), 0U);
  EXPECT_EQ(calls, 2);
}

TEST(Writer, FailsToStartOnASinkThatFails) {
  int calls = 0;
  EXPECT_FALSE(TraceWriter::create(std::make_unique<FailingSink>(0, &calls), {}).ok());
}

}  // namespace
}  // namespace tidemark::testing
