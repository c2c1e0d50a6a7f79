// Definitions sent by the process, from its writer through a lane to the recorder's tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collect/process/lane_writer.h"
#include "collect/recorder/lanes/lane_definitions.h"
#include "collect/recorder/lanes/lane_reader.h"
#include "ring_memory.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

using process::DefinitionWriter;
using ring::DefinitionKind;
using ::testing::ElementsAre;

class DefinitionsTest : public ::testing::Test {
 protected:
  DefinitionsTest() { lane.open(memory.get(), &memory.get()->lanes[0]); }

  /// Delivers all records to the recorder; returns how many were invalid.
  std::size_t deliver() {
    std::size_t refused = 0;
    RingRecord record;
    while (reader.next(record)) {
      if (record.header.kind == ring::RecordKind::reset) {
        definitions.reset();
      } else if (!definitions.blob(record.header, record.fields(), *writer)) {
        ++refused;
      }
    }
    return refused;
  }

  /// A Python text: its kind, and its code points in as many bytes each.
  static void python_text(DefinitionWriter& out, std::uint8_t kind, const std::vector<std::uint32_t>& code_points) {
    std::string raw;
    for (const std::uint32_t code_point : code_points) raw.append(reinterpret_cast<const char*>(&code_point), kind);
    out.bytes(&kind, 1);
    out.text(raw.data(), raw.size());
  }
  static void python_text(DefinitionWriter& out, const std::string& text) {
    python_text(out, 1, std::vector<std::uint32_t>(text.begin(), text.end()));
  }
  void define_code(std::uint64_t address, const std::vector<std::uint32_t>& name, std::uint8_t kind = 1,
                   const std::string& file = "a.py") {
    DefinitionWriter out(&lane, DefinitionKind::code);
    out.u64(address);
    out.u32(0x0309);
    out.u32(1);
    out.u32(0);
    python_text(out, file);
    python_text(out, kind, name);
    // The example of CPython's lnotab_notes.txt: offsets 0, 6, 50, 350, 361 are lines 1, 2, 7, 207, 208.
    const unsigned char table[] = {6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1};
    out.text(table, sizeof(table));
    ASSERT_TRUE(out.finish());
  }
  void define_module(std::uint64_t start, std::uint64_t end, const char* path) {
    DefinitionWriter out(&lane, DefinitionKind::module);
    out.u64(start);
    out.u64(end);
    out.u64(start - 0x1000);
    out.text(path);
    out.text("\x01\xAB\xFF", 3);
    ASSERT_TRUE(out.finish());
  }
  struct Frame {
    std::uint64_t code;
    std::uint32_t instruction;
  };
  struct CalledModule {
    std::uint32_t frame;
    std::uint64_t address;
  };
  void define_stack(std::uint32_t number, const std::vector<Frame>& python, const std::vector<std::uint64_t>& native,
                    const std::vector<CalledModule>& modules = {}) {
    DefinitionWriter out(&lane, DefinitionKind::stack);
    out.u32(number);
    out.u32(static_cast<std::uint32_t>(python.size()));
    out.u32(static_cast<std::uint32_t>(native.size()));
    out.u32(static_cast<std::uint32_t>(modules.size()));
    if (!modules.empty()) out.u64(0);
    for (const CalledModule& module : modules) {
      out.u32(module.frame);
      out.u64(module.address);
    }
    for (const Frame& frame : python) {
      out.u64(frame.code);
      out.u32(frame.instruction);
    }
    for (const std::uint64_t address : native) out.u64(address);
    ASSERT_TRUE(out.finish());
  }
  /// The source of the lines of kGenerated from 2 on.
  void define_lines() {
    DefinitionWriter out(&lane, DefinitionKind::lines);
    python_text(out, kGenerated);
    out.u32(2);
    out.u32(1);
    python_text(out, "  File \"model.py\", line 28, in forward\n  File \"model.py\", line 15, in block\n");
    out.u32(7);
    out.u32(0);
    ASSERT_TRUE(out.finish());
  }
  /// Records of one definition as raw bytes.
  void send_raw(const std::string& raw) {
    std::uint32_t kind = 0;
    std::memcpy(&kind, raw.data(), sizeof(kind));
    DefinitionWriter out(&lane, static_cast<DefinitionKind>(kind));
    out.bytes(raw.data() + sizeof(kind), raw.size() - sizeof(kind));
    ASSERT_TRUE(out.finish());
  }

  Recording finish() {
    EXPECT_TRUE(writer->finish({}).ok());
    return read_all(bytes);
  }
  /// A stack of the recording, innermost first: "function:line" or "path+offset".
  static std::vector<std::string> frames(const Recording& recording, StackId stack) {
    const Definitions& all = recording.definitions;
    std::vector<std::string> out;
    for (; stack.valid(); stack = all.stacks.at(stack.value).parent) {
      const Location& at = all.locations.at(all.stacks.at(stack.value).location.value);
      if (at.kind == Location::Kind::python) {
        out.push_back(all.strings.at(at.function.value) + ":" + std::to_string(at.line));
      } else {
        const bool known = at.module.valid();
        out.push_back((known ? all.strings.at(all.modules.at(at.module.value).path.value) : std::string("?")) + "+" +
                      std::to_string(at.offset));
      }
    }
    return out;
  }

  static constexpr const char* kGenerated = "/absent/ab/cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrs.py";

  RingMemory memory;
  process::LaneWriter lane;
  LaneReader reader{memory.get(), 0};
  NnModules nn_modules;
  LaneDefinitions definitions{nn_modules};
  Bytes bytes;
  std::unique_ptr<TraceWriter> writer = write_to(&bytes);
};

TEST_F(DefinitionsTest, Thread) {
  DefinitionWriter out(&lane, DefinitionKind::thread);
  out.u32(4711);
  out.text("pt_main_thread");
  ASSERT_TRUE(out.finish());
  EXPECT_FALSE(definitions.thread().valid());
  EXPECT_EQ(deliver(), 0U);
  ASSERT_TRUE(definitions.thread().valid());
  const ThreadId thread = definitions.thread();
  const Recording recording = finish();
  EXPECT_EQ(recording.definitions.threads.at(thread.value).tid, 4711);
  EXPECT_EQ(recording.definitions.threads.at(thread.value).name, "pt_main_thread");
}

TEST_F(DefinitionsTest, Process) {
  DefinitionWriter out(&lane, DefinitionKind::process);
  out.u32(3);
  out.u32(static_cast<std::uint32_t>(-1));
  out.u32(8);
  out.text("3.12.1");
  out.text("/opt/torch/lib/libc10.so");
  ASSERT_TRUE(out.finish());
  EXPECT_EQ(deliver(), 0U);
  ASSERT_NE(definitions.process_facts, nullptr);
  EXPECT_EQ(definitions.process_facts->rank, 3);
  EXPECT_EQ(definitions.process_facts->local_rank, std::nullopt);
  EXPECT_EQ(definitions.process_facts->world_size, 8);
  EXPECT_EQ(definitions.process_facts->python_version, "3.12.1");
  EXPECT_EQ(definitions.process_facts->reporting_library, "/opt/torch/lib/libc10.so");
  EXPECT_EQ(definitions.process_facts->allocator_settings, std::nullopt) << "an older library does not report them";
}

TEST_F(DefinitionsTest, ProcessWithAllocatorSettings) {
  DefinitionWriter out(&lane, DefinitionKind::process);
  for (int number = 0; number < 3; ++number) out.u32(static_cast<std::uint32_t>(-1));
  out.text("3.12.1");
  out.text("/opt/torch/lib/libc10.so");
  out.text("expandable_segments:True");
  ASSERT_TRUE(out.finish());
  EXPECT_EQ(deliver(), 0U);
  EXPECT_EQ(definitions.process_facts->allocator_settings, "expandable_segments:True");
}

TEST_F(DefinitionsTest, NoteBecomesALoss) {
  DefinitionWriter out(&lane, DefinitionKind::loss);
  out.u32(static_cast<std::uint32_t>(QualityId::python_unsupported));
  out.text("3.42");
  ASSERT_TRUE(out.finish());
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  ASSERT_EQ(recording.definitions.losses.size(), 1U);
  EXPECT_EQ(recording.definitions.losses[0].kind, QualityId::python_unsupported);
  EXPECT_EQ(recording.definitions.losses[0].count, 1U);
  EXPECT_EQ(recording.definitions.losses[0].text, "3.42");
}

TEST_F(DefinitionsTest, PythonTextOfEveryKindBecomesUtf8) {
  define_code(0x10, {'f', 0xE9});                  // Latin-1: é
  define_code(0x20, {'f', 0x20AC, 0xD800}, 2);     // €, and half of a surrogate pair
  define_code(0x30, {0x1F600, 'x', 0x110000}, 4);  // an emoji, and a number beyond Unicode
  define_stack(0, {{0x10, 0}, {0x20, 6}, {0x30, 350}}, {});
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  EXPECT_THAT(frames(recording, definitions.stack(0)),
              ElementsAre("f\xC3\xA9:1", "f\xE2\x82\xAC\xEF\xBF\xBD:2", "\xF0\x9F\x98\x80x\xEF\xBF\xBD:207"));
}

TEST_F(DefinitionsTest, SourceLinesFollowGeneratedLines) {
  define_code(0x10, {'f'});
  define_code(0x20, {'c', 'a', 'l', 'l'}, 1, kGenerated);
  define_lines();
  define_module(0x7000'1000, 0x7000'2000, "/lib/libx.so");
  define_stack(0, {{0x20, 6}, {0x10, 0}}, {0x7000'1801});  // line 2
  define_stack(1, {{0x20, 0}, {0x10, 0}}, {});             // line 1, before all of them
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  EXPECT_THAT(frames(recording, definitions.stack(0)),
              ElementsAre("/lib/libx.so+" + std::to_string(0x1800), "block:15", "forward:28", "call:2", "f:1"));
  EXPECT_THAT(frames(recording, definitions.stack(1)), ElementsAre("call:1", "f:1"));
  for (const Location& location : recording.definitions.locations) {
    const std::vector<std::string>& strings = recording.definitions.strings;
    const bool plain = location.kind != Location::Kind::python || strings.at(location.function.value) == "f";
    EXPECT_EQ(location.graph, plain ? CompiledGraph::none : CompiledGraph::unknown) << location.line;
  }
}

TEST_F(DefinitionsTest, LinesMayComeAfterStacks) {
  define_code(0x20, {'c', 'a', 'l', 'l'}, 1, kGenerated);
  define_stack(0, {{0x20, 6}}, {});
  EXPECT_EQ(deliver(), 0U);
  const StackId before = definitions.stack(0);
  define_lines();
  EXPECT_EQ(deliver(), 0U);
  const StackId after = definitions.stack(0);
  // The file's name determines its content: after a reset the lines are known.
  lane.reserve(1)[0] = static_cast<std::uint64_t>(ring::RecordKind::reset) | std::uint64_t{1} << 24;
  lane.commit(1);
  define_code(0x30, {'c', 'a', 'l', 'l'}, 1, kGenerated);
  define_stack(0, {{0x30, 6}}, {});
  EXPECT_EQ(deliver(), 0U);
  EXPECT_EQ(definitions.stack(0), after);
  const Recording recording = finish();
  EXPECT_THAT(frames(recording, before), ElementsAre("call:2"));
  EXPECT_THAT(frames(recording, after), ElementsAre("block:15", "forward:28", "call:2"));
}

TEST_F(DefinitionsTest, InvalidLinesAreRefused) {
  const auto send = [&](const std::string& path, const std::vector<std::uint32_t>& words) {
    DefinitionWriter out(&lane, DefinitionKind::lines);
    python_text(out, path);
    for (const std::uint32_t word : words) out.u32(word);
    ASSERT_TRUE(out.finish());
  };
  send("/etc/passwd", {2, 0});          // no generated file
  send(kGenerated, {2});                // half an entry
  send(kGenerated, {2, 1});             // a trace that does not come
  send(kGenerated, {2, 1, 0x1000000});  // and one that is longer than the definition
  EXPECT_EQ(deliver(), 4U);
  send(kGenerated, {2, 9, 1, 0, 2, 0});  // an unknown trace, lines in no order
  define_code(0x20, {'c', 'a', 'l', 'l'}, 1, kGenerated);
  define_stack(0, {{0x20, 6}}, {});
  EXPECT_EQ(deliver(), 0U);
  EXPECT_THAT(frames(finish(), definitions.stack(0)), ElementsAre("call:2"));
}

TEST_F(DefinitionsTest, FramesHaveTheModulesThatTheyCall) {
  define_code(0x10, {'f'});
  define_stack(0, {{0x10, 0}, {0x10, 0}, {0x10, 0}}, {}, {{0, 0xA0}, {2, 0xB0}});
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  const Definitions& all = recording.definitions;
  std::vector<std::uint64_t> modules;
  for (StackId at = definitions.stack(0); at.valid(); at = all.stacks.at(at.value).parent) {
    const NnModuleId module = all.locations.at(all.stacks.at(at.value).location.value).nn_module;
    modules.push_back(module.valid() ? all.nn_modules.at(module.value).address : 0);
  }
  EXPECT_THAT(modules, ElementsAre(0xA0, 0, 0xB0));
}

TEST_F(DefinitionsTest, AModelHasNamesAndTensors) {
  DefinitionWriter out(&lane, DefinitionKind::model);
  const auto u8 = [&](int value) {
    const auto byte = static_cast<std::uint8_t>(value);
    out.bytes(&byte, 1);
  };
  out.u64(0);
  out.u64(77);
  u8(1);
  out.u64(0xA0);
  out.u64(0xB0);
  out.text("layers.3");
  out.text("my.Layer");
  u8(2);
  for (const int byte : {4, 1, -1, 1}) u8(byte);
  for (const std::uint64_t number : {0x1000U, 512U, 24U, 0xA0U}) out.u64(number);
  for (const char* text : {"weight", "exp_avg", "float32"}) out.text(text);
  u8(2);
  out.u64(2);
  out.u64(3);
  ASSERT_TRUE(out.finish());
  EXPECT_EQ(deliver(), 0U);
  ASSERT_TRUE(definitions.model);
  EXPECT_EQ(definitions.model->ticks, 77U);
  ASSERT_EQ(definitions.model->tensors.size(), 1U);
  const ModelTensor tensor = definitions.model->tensors[0];
  const Recording recording = finish();
  const Definitions& all = recording.definitions;
  ASSERT_EQ(all.nn_module_names.size(), 1U);
  const NnModuleName& name = all.nn_module_names[0];
  EXPECT_EQ(all.nn_modules.at(name.module.value).address, 0xA0U);
  EXPECT_EQ(all.nn_modules.at(name.root.value).address, 0xB0U);
  EXPECT_EQ(all.strings.at(name.path.value), "layers.3");
  EXPECT_EQ(all.strings.at(name.type.value), "my.Layer");
  EXPECT_EQ(tensor.role, ModelTensor::Role::optimizer_state);
  EXPECT_EQ(tensor.device, (Device{DeviceType::cuda, -1}));
  EXPECT_TRUE(tensor.requires_grad);
  EXPECT_EQ(tensor.address, 0x1000U);
  EXPECT_EQ(tensor.storage_bytes, 512U);
  EXPECT_EQ(tensor.bytes, 24U);
  EXPECT_EQ(tensor.module.value, name.module.value);
  EXPECT_EQ(all.strings.at(tensor.name.value), "weight");
  EXPECT_EQ(all.strings.at(tensor.state.value), "exp_avg");
  EXPECT_EQ(all.strings.at(tensor.dtype.value), "float32");
  EXPECT_THAT(tensor.shape, ElementsAre(2, 3));
}

TEST_F(DefinitionsTest, NativeFramesAreFoundInTheirModules) {
  define_module(0x7000'1000, 0x7000'2000, "/lib/libx.so");
  define_code(0x10, {'f'});
  // Return addresses: the call is one byte before. The first belongs to the call that is the module's last instruction,
  // the second to one that would begin before its first byte, the third to none at all.
  define_stack(0, {{0x10, 50}}, {0x7000'2000, 0x7000'1000, 0x42});
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  EXPECT_THAT(frames(recording, definitions.stack(0)),
              ElementsAre("/lib/libx.so+" + std::to_string(0x1FFF), "?+" + std::to_string(0x7000'0FFF), "?+65", "f:7"));
  EXPECT_EQ(recording.definitions.modules.at(0).build_id, "01abff");
  EXPECT_EQ(recording.definitions.modules.at(0).load_address, 0x7000'0000U);
}

TEST_F(DefinitionsTest, CuptiFramesAreNotInStacks) {
  define_module(0x7000'1000, 0x7000'2000, "/cuda/libcupti.so.13");
  define_module(0x7100'1000, 0x7100'2000, "/lib/libcuda.so.1");
  define_stack(0, {}, {0x7000'1010, 0x7000'1020, 0x7100'1030, 0x7000'1040});
  define_stack(1, {}, {0x7100'1030});
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  // Load addresses are 0x1000 below the starts, and the call is a byte before its return address.
  EXPECT_THAT(frames(recording, definitions.stack(0)), ElementsAre("/lib/libcuda.so.1+" + std::to_string(0x102F),
                                                                   "/cuda/libcupti.so.13+" + std::to_string(0x103F)));
  EXPECT_THAT(frames(recording, definitions.stack(1)), ElementsAre("/lib/libcuda.so.1+" + std::to_string(0x102F)));
}

TEST_F(DefinitionsTest, LongDefinitionsComeInPieces) {
  for (const std::size_t length :
       {std::size_t{900}, ring::kBlobBytes - 8, ring::kBlobBytes - 7, std::size_t{200'000}}) {
    std::string name;
    for (std::size_t at = 0; at < length; ++at) name += static_cast<char>('a' + at % 26);
    DefinitionWriter out(&lane, DefinitionKind::thread);
    out.u32(5);
    out.text(name.c_str());
    ASSERT_TRUE(out.finish());
    ASSERT_EQ(deliver(), 0U);
    const ThreadId thread = definitions.thread();
    ASSERT_TRUE(writer->flush().ok());
    EXPECT_EQ(read_all(bytes).definitions.threads.at(thread.value).name, name);
  }
}

TEST_F(DefinitionsTest, ResetForgetsStacksAndCode) {
  define_code(0x10, {'f'});
  define_stack(0, {{0x10, 0}}, {});
  define_stack(1, {{0x10, 6}}, {});
  EXPECT_EQ(deliver(), 0U);
  const StackId before = definitions.stack(1);
  std::uint64_t* record = lane.reserve(1);
  const ring::RecordHeader header{ring::RecordKind::reset, 0, 0, 1, 0};
  std::memcpy(record, &header, sizeof(header));
  lane.commit(1);
  EXPECT_EQ(deliver(), 0U);
  EXPECT_FALSE(definitions.stack(0).valid());
  EXPECT_FALSE(definitions.stack(1).valid());
  define_code(0x10, {'g'});  // another code object at the same address
  define_stack(0, {{0x10, 6}}, {});
  EXPECT_EQ(deliver(), 0U);
  const Recording recording = finish();
  EXPECT_THAT(frames(recording, before), ElementsAre("f:2"));
  EXPECT_THAT(frames(recording, definitions.stack(0)), ElementsAre("g:2"));
}

// The pool runs out in the middle: the beginning is sent, but not the end; the next definition starts again.
TEST_F(DefinitionsTest, AnUnfinishedDefinitionIsDropped) {
  for (auto& word : memory.get()->free_chunks) word.store(0);
  memory.get()->free_chunks[0].store(3);  // two chunks
  const std::string name(2 * ring::kChunkBytes, 'x');
  DefinitionWriter unfinished(&lane, DefinitionKind::thread);
  unfinished.u32(1);
  unfinished.text(name.c_str());
  EXPECT_FALSE(unfinished.finish());
  EXPECT_EQ(deliver(), 0U);  // gives the first chunk back
  DefinitionWriter out(&lane, DefinitionKind::thread);
  out.u32(2);
  out.text("after");
  ASSERT_TRUE(out.finish());
  EXPECT_EQ(deliver(), 0U);
  const ThreadId thread = definitions.thread();
  const Recording recording = finish();
  ASSERT_EQ(recording.definitions.threads.size(), 1U);
  EXPECT_EQ(recording.definitions.threads.at(thread.value).name, "after");
}

TEST_F(DefinitionsTest, RefusesInvalidDefinitions) {
  const auto u32 = [](std::uint32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); };
  const std::string wrong[] = {
      u32(0),                                                              // no such kind
      u32(7),                                                              //
      u32(0xFFFF'FFFF),                                                    //
      u32(1),                                                              // a thread without a number
      u32(1) + u32(5),                                                     // ... without a name
      u32(1) + u32(5) + u32(4) + "abc",                                    // ... with a name longer than what follows
      u32(1) + u32(5) + u32(0xFFFF'FFFF) + "abc",                          //
      u32(2) + u32(0) + u32(0),                                            // a process cut off
      u32(3) + std::string(20, 'x') + "\x01",                              // a code object cut off in its file
      u32(4) + std::string(24, 'x'),                                       // a module without a path
      u32(5) + u32(0) + u32(1) + u32(0) + u32(0),                          // a stack without its frame
      u32(5) + u32(0) + u32(129) + u32(0),                                 // one with too many
      u32(5) + u32(0) + u32(0) + u32(0xFFFF'FFFF),                         //
      u32(5) + u32(9) + u32(0) + u32(0),                                   // one out of turn
      u32(5) + u32(0) + u32(1) + u32(0) + u32(1) + std::string(24, '\1'),  // one with a module of a frame that it lacks
      u32(6) + u32(3),                                                     // a note without text
      u32(8) + std::string(15, 'x'),                                       // a model without a time
      u32(8) + std::string(16, 'x') + "\x03",                              // ... with an entry of an unknown kind
      u32(8) + std::string(16, 'x') + "\x01" + std::string(16, 'x') + u32(9),  // ... a module without its name
      u32(8) + std::string(16, 'x') + "\x02" + std::string(100, '\x05'),       // ... a tensor of an unknown role
      u32(9) + std::string(15, 'x'),                                           // a death without its generation
  };
  for (const std::string& raw : wrong) {
    definitions.reset();
    send_raw(raw);
    EXPECT_EQ(deliver(), 1U) << ::testing::PrintToString(raw);
  }
  EXPECT_EQ(definitions.process_facts, nullptr);
  EXPECT_FALSE(definitions.thread().valid());
  EXPECT_FALSE(definitions.stack(0).valid());
  const Recording recording = finish();
  EXPECT_TRUE(recording.definitions.threads.empty());
  EXPECT_TRUE(recording.definitions.modules.empty());
  EXPECT_TRUE(recording.definitions.losses.empty());
}

// An invalid stack keeps its number, so that later ones are still found.
TEST_F(DefinitionsTest, ABrokenStackDoesNotMoveTheOthers) {
  define_code(0x10, {'f'});
  define_stack(0, {{0x10, 0}}, {});
  const std::uint32_t cut_off[] = {5, 1, 1, 0, 0, 0x10, 0};  // number 1, one Python frame without its instruction
  send_raw(std::string(reinterpret_cast<const char*>(cut_off), sizeof(cut_off)));
  define_stack(2, {{0x10, 50}}, {});
  EXPECT_EQ(deliver(), 1U);
  const Recording recording = finish();
  EXPECT_THAT(frames(recording, definitions.stack(0)), ElementsAre("f:1"));
  EXPECT_FALSE(definitions.stack(1).valid());
  EXPECT_THAT(frames(recording, definitions.stack(2)), ElementsAre("f:7"));
}

TEST_F(DefinitionsTest, RefusesABlobLongerThanItsRecord) {
  std::uint64_t* record = lane.reserve(2);
  const ring::RecordHeader header{ring::RecordKind::blob, ring::kBlobFirst | ring::kBlobLast, 0, 2, 9};
  std::memcpy(record, &header, sizeof(header));
  record[1] = 1;
  lane.commit(2);
  EXPECT_EQ(deliver(), 1U);
}

TEST_F(DefinitionsTest, RefusesEndlessDefinitions) {
  DefinitionWriter out(&lane, DefinitionKind::thread);
  out.u32(1);
  out.u32(32 << 20);
  const std::string piece(64 * 1024, 'x');
  std::size_t refused = 0;
  for (int count = 0; count < 512; ++count) {
    out.bytes(piece.data(), piece.size());
    refused += deliver();
  }
  EXPECT_TRUE(out.finish());
  EXPECT_GT(refused, 0U) << "32 MiB are more than it keeps";
  deliver();
  EXPECT_FALSE(definitions.thread().valid());
  DefinitionWriter next(&lane, DefinitionKind::thread);
  next.u32(2);
  next.text("next");
  ASSERT_TRUE(next.finish());
  EXPECT_EQ(deliver(), 0U);
  EXPECT_TRUE(definitions.thread().valid());
}

}  // namespace
}  // namespace tidemark::testing
