// The row of the layout table compared with the headers of an installed interpreter; built once for each.
#include "collect/process/python/layout.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "layout_facts.h"

namespace tidemark::process {
namespace {

std::map<std::string, std::size_t> row_of(const Layout& layout) {
  return {
      {"version", layout.version},
      {"thread_interpreter", layout.thread_interpreter},
      {"thread_frame", layout.thread_frame},
      {"cframe_frame", layout.cframe_frame},
      {"frame_previous", layout.frame_previous},
      {"frame_code", layout.frame_code},
      {"frame_instruction", layout.frame_instruction},
      {"frame_owner", layout.frame_owner},
      {"frame_first_local", layout.frame_first_local},
      {"tag_mask", layout.tag_mask},
      {"code_basic_size", layout.code_basic_size},
      {"code_file", layout.code_file},
      {"code_function", layout.code_function},
      {"code_first_line", layout.code_first_line},
      {"code_line_table", layout.code_line_table},
      {"code_cells", layout.code_cells},
      {"code_first_traceable", layout.code_first_traceable},
      {"code_bytecode", layout.code_bytecode},
      {"ascii_string_size", layout.ascii_string_size},
      {"compact_string_size", layout.compact_string_size},
      {"debug_thread", layout.debug_thread},
      {"debug_frame", layout.debug_frame},
      {"debug_code", layout.debug_code},
      {"object_type", kObjectType},
      {"object_size", kObjectSize},
      {"type_basic_size", kTypeBasicSize},
      {"type_dealloc", kTypeDealloc},
      {"type_flags", kTypeFlags},
      {"string_length", kStringLength},
      {"string_state", kStringState},
      {"bytes_data", kBytesData},
      {"state_kind_1", 1U << kStateKindShift},
      {"state_kind_4", 4U << kStateKindShift},
      {"state_compact", kStateCompact},
      {"state_ascii", kStateAscii},
      {"bytes_subclass_flag", kBytesSubclassFlag},
      {"string_subclass_flag", kStringSubclassFlag},
      {"owned_by_generator", kOwnedByGenerator},
      {"first_shim_owner", kFirstShimOwner},
      {"last_owner", kLastOwner},
      {"debug_version", kDebugVersion},
      {"debug_free_threaded", kDebugFreeThreaded},
      {"debug_thread_interpreter", kDebugThreadInterpreter},
      {"debug_thread_frame", kDebugThreadFrame},
      {"debug_frame_previous", kDebugFramePrevious},
      {"debug_frame_code", kDebugFrameCode},
      {"debug_frame_instruction", kDebugFrameInstruction},
      {"debug_frame_first_local", kDebugFrameFirstLocal},
      {"debug_frame_owner", kDebugFrameOwner},
      {"debug_code_file", kDebugCodeFile},
      {"debug_code_function", kDebugCodeFunction},
      {"debug_code_line_table", kDebugCodeLineTable},
      {"debug_code_first_line", kDebugCodeFirstLine},
      {"debug_code_bytecode", kDebugCodeBytecode},
  };
}

TEST(PythonLayout, AgreesWithTheHeaders) {
  std::vector<LayoutFact> facts(layout_facts(nullptr, 0));
  ASSERT_EQ(layout_facts(facts.data(), facts.size()), facts.size());
  ASSERT_EQ(std::string(facts[0].name), "version");
  const Layout* layout = find_layout(static_cast<std::uint16_t>(facts[0].value));
  ASSERT_NE(layout, nullptr) << std::hex << facts[0].value;
  const std::map<std::string, std::size_t> row = row_of(*layout);
  for (const LayoutFact& fact : facts) {
    ASSERT_TRUE(row.contains(fact.name)) << fact.name;
    EXPECT_EQ(row.at(fact.name), fact.value) << fact.name;
  }
}

}  // namespace
}  // namespace tidemark::process
