#include "import/pytorch_snapshot/pickle/opcodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tidemark::pytorch {
namespace {

using Why = RefusedOpcode::Why;

struct Row {
  std::uint8_t code;
  Why why;
  std::string_view name;
};

constexpr std::array kRefused = {
    Row{'c', Why::runs_code, "GLOBAL"},
    Row{0x93, Why::runs_code, "STACK_GLOBAL"},
    Row{'R', Why::runs_code, "REDUCE"},
    Row{'b', Why::runs_code, "BUILD"},
    Row{'i', Why::runs_code, "INST"},
    Row{'o', Why::runs_code, "OBJ"},
    Row{0x81, Why::runs_code, "NEWOBJ"},
    Row{0x92, Why::runs_code, "NEWOBJ_EX"},
    Row{0x82, Why::runs_code, "EXT1"},
    Row{0x83, Why::runs_code, "EXT2"},
    Row{0x84, Why::runs_code, "EXT4"},
    Row{'P', Why::runs_code, "PERSID"},
    Row{'Q', Why::runs_code, "BINPERSID"},
    Row{0x97, Why::outside, "NEXT_BUFFER"},
    Row{0x98, Why::outside, "READONLY_BUFFER"},
    Row{0x8F, Why::not_used, "EMPTY_SET"},
    Row{0x90, Why::not_used, "ADDITEMS"},
    Row{0x91, Why::not_used, "FROZENSET"},
    Row{'U', Why::not_used, "SHORT_BINSTRING"},
    Row{'T', Why::not_used, "BINSTRING"},
    Row{'0', Why::not_used, "POP"},
    Row{'1', Why::not_used, "POP_MARK"},
    Row{'2', Why::not_used, "DUP"},
    Row{'I', Why::protocol0, "INT"},
    Row{'L', Why::protocol0, "LONG"},
    Row{'F', Why::protocol0, "FLOAT"},
    Row{'S', Why::protocol0, "STRING"},
    Row{'V', Why::protocol0, "UNICODE"},
    Row{'d', Why::protocol0, "DICT"},
    Row{'l', Why::protocol0, "LIST"},
    Row{'p', Why::protocol0, "PUT"},
    Row{'g', Why::protocol0, "GET"},
};

}  // namespace

RefusedOpcode refused_opcode(std::uint8_t opcode) {
  const auto* row =
      std::find_if(kRefused.begin(), kRefused.end(), [&](const Row& each) { return each.code == opcode; });
  return row == kRefused.end() ? RefusedOpcode{} : RefusedOpcode{row->why, row->name};
}

std::string refusal(std::uint8_t opcode, std::string_view global) {
  const RefusedOpcode refused = refused_opcode(opcode);
  switch (refused.why) {
    case Why::runs_code:
      return fmt::format(
          "refused: {}{}{} would run code when unpickled with Python; nothing was run. Memory snapshots, as "
          "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") writes them, have numbers and texts only",
          refused.name, global.empty() ? "" : " of ", global);
    case Why::outside:
      return fmt::format("refused: {} refers to memory that is not in the file", refused.name);
    case Why::not_used:
      return fmt::format("refused: {} is not used in snapshots", refused.name);
    case Why::protocol0:
      return fmt::format("{} is of pickle protocol 0 or 1: pickle the snapshot again with protocol 2 or later",
                         refused.name);
    case Why::unknown:
      break;
  }
  return fmt::format("not an opcode of pickles: 0x{:02X}", opcode);
}

}  // namespace tidemark::pytorch
