#include "store/symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "store/symbol_files.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using testing::Scenario;

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe.get()))
    output.append(buffer.data(), count);
  return output;
}

struct NmSymbol {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::string name;
};

// Functions with a size, as binutils sees them.
std::vector<NmSymbol> nm(const std::string& path, const std::string& options) {
  std::vector<NmSymbol> symbols;
  std::istringstream lines(output_of("nm -S --demangle " + options + " '" + path + "'"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    NmSymbol symbol;
    std::string type;
    words >> std::hex >> symbol.address >> symbol.size >> type;
    if (!words || std::string("tTwWi").find(type) == std::string::npos) continue;
    std::getline(words >> std::ws, symbol.name);
    symbols.push_back(symbol);
  }
  return symbols;
}

std::string build_id_of(const std::string& path) {
  const std::string notes = output_of("readelf -n '" + path + "' 2>/dev/null");
  const std::size_t at = notes.find("Build ID: ");
  return at == std::string::npos ? "" : notes.substr(at + 10, notes.find('\n', at) - at - 10);
}

void expect_names_as_nm(const std::string& path, const std::string& nm_options) {
  const auto symbols = ElfSymbols::open(path, build_id_of(path));
  ASSERT_TRUE(symbols.ok()) << symbols.error().message;
  const std::vector<NmSymbol> expected = nm(path, nm_options);
  ASSERT_GE(expected.size(), 3U);
  std::map<std::uint64_t, std::vector<std::string>> names;  // several names may share an address
  for (const NmSymbol& symbol : expected) names[symbol.address].push_back(symbol.name);
  for (const NmSymbol& symbol : expected) {
    for (const std::uint64_t address : {symbol.address, symbol.address + symbol.size - 1}) {
      const auto name = (*symbols)->function_at(address);
      ASSERT_TRUE(name.has_value()) << symbol.name;
      EXPECT_THAT(names[symbol.address], ::testing::Contains(*name));
    }
  }
}

TEST(ElfSymbols, NamesFunctionsAsNmDoes) {
  expect_names_as_nm(SYMBOL_TARGET, "");
}

TEST(ElfSymbols, UsesTheDynamicTableOfAStrippedFile) {
  const std::string stripped = (std::filesystem::temp_directory_path() / "symbols_test.stripped.so").string();
  output_of("strip -o '" + stripped + "' " SYMBOL_TARGET);
  expect_names_as_nm(stripped, "-D");
  std::filesystem::remove(stripped);
}

TEST(ElfSymbols, SaysWhyAFileCannotBeUsed) {
  const auto reason = [](const std::string& path, const std::string& build_id) {
    const auto opened = ElfSymbols::open(path, build_id);
    return opened ? std::string("opened") : opened.error().message;
  };
  EXPECT_THAT(reason("/nonexistent/lib.so", ""), HasSubstr("No such file"));
  EXPECT_THAT(reason("/", ""), HasSubstr("not a regular file"));
  EXPECT_THAT(reason(SYMBOL_TARGET, "0123456789abcdef"), HasSubstr("build-id differs"));
  const std::string text = (std::filesystem::temp_directory_path() / "symbols_test.txt").string();
  std::ofstream(text) << "no ELF";
  EXPECT_THAT(reason(text, ""), HasSubstr("not an ELF file"));
  std::filesystem::remove(text);
}

TEST(ElfSymbols, DoesNotHangOnAFifo) {
  const std::string fifo = (std::filesystem::temp_directory_path() / "symbols_test.fifo").string();
  std::filesystem::remove(fifo);
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto opened = ElfSymbols::open(fifo, "");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("not a regular file"));
  std::filesystem::remove(fifo);
}

// Every prefix of a real file, and the file with bytes changed: an answer or an error, never a crash.
TEST(ElfSymbols, SurvivesDamagedFiles) {
  std::ifstream file(SYMBOL_TARGET, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string path = (std::filesystem::temp_directory_path() / "symbols_test.damaged.so").string();
  const std::string id = build_id_of(SYMBOL_TARGET);
  const auto try_bytes = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    if (const auto opened = ElfSymbols::open(path, id); opened) (void)(*opened)->function_at(0x1000);
  };
  for (std::size_t size = 0; size < good.size(); size += 97) try_bytes(good.substr(0, size));
  for (std::size_t at = 0; at < good.size(); at += 61) {
    std::string bad = good;
    bad[at] = static_cast<char>(~bad[at]);
    try_bytes(bad);
  }
  std::filesystem::remove(path);
}

TEST(Symbols, NamesPythonFrames) {
  Scenario scenario;
  const LocationId location = scenario.python("Linear.forward", "/a/linear.py", 114);
  Symbols symbols(scenario.definitions);
  EXPECT_EQ(symbols.name(location).function, "Linear.forward");
  EXPECT_EQ(symbols.name(location).file, "/a/linear.py");
  EXPECT_EQ(symbols.name(location).line, 114U);
}

TEST(Symbols, NamesNativeFramesByTheirFile) {
  std::uint64_t address = 0;
  for (const NmSymbol& symbol : nm(SYMBOL_TARGET, "")) {
    if (symbol.name == "plain_c_function") address = symbol.address;
  }
  ASSERT_NE(address, 0U);
  Scenario scenario;
  const LocationId location = scenario.native(SYMBOL_TARGET, address + 1, build_id_of(SYMBOL_TARGET));
  Symbols symbols(scenario.definitions);
  EXPECT_EQ(symbols.name(location).function, "plain_c_function");
  EXPECT_TRUE(symbols.missing().empty());
}

TEST(Symbols, GivesModuleAndOffsetWhereTheFileIsGone) {
  Scenario scenario;
  const LocationId location = scenario.native("/nonexistent/libfoo.so", 0x1234);
  Symbols symbols(scenario.definitions);
  EXPECT_TRUE(symbols.missing().empty());  // nothing was requested yet
  EXPECT_EQ(symbols.name(location).function, "libfoo.so+0x1234");
  EXPECT_EQ(symbols.name(location).function, "libfoo.so+0x1234");
  ASSERT_EQ(symbols.missing().size(), 1U);
  EXPECT_EQ(symbols.missing()[0].locations, 1U);
  EXPECT_THAT(symbols.missing()[0].error.value_or(""), HasSubstr("No such file"));
}

// In a separate process, because it is permanent.
TEST(SymbolsDeathTest, LeavesFilesAloneOnRequest) {
  const std::string id = build_id_of(SYMBOL_TARGET);
  ASSERT_TRUE(ElfSymbols::open(SYMBOL_TARGET, id).ok());
  const auto leave_alone = [&] {
    leave_symbol_files_alone();
    const auto opened = ElfSymbols::open(SYMBOL_TARGET, id);
    Scenario scenario;
    const LocationId location = scenario.native(SYMBOL_TARGET, 0x1234, id);
    Symbols symbols(scenario.definitions);
    const std::string name = symbols.name(location).function;
    std::fprintf(stderr, "%s: %s\n", name.c_str(), opened ? "opened" : opened.error().message.c_str());
    std::exit(0);
  };
  EXPECT_EXIT(leave_alone(), ::testing::ExitedWithCode(0), R"(\+0x1234: is outside of what this process reads)");
}

TEST(Symbols, ListsAStacksFramesFromTheOutermost) {
  Scenario scenario;
  const LocationId outer = scenario.python("outer", "a.py", 1);
  const LocationId inner = scenario.python("inner", "a.py", 2);
  const StackId stack = scenario.stack({outer, inner});
  const Symbols symbols(scenario.definitions);
  EXPECT_EQ(symbols.frames(stack), (std::vector<LocationId>{outer, inner}));
  EXPECT_TRUE(symbols.frames(StackId{}).empty());
}

}  // namespace
}  // namespace tidemark
