// One description and its output: JSON, JSON Schema, Python, TypeScript and a table of keys.
#include "query/describe/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "query/describe/printers.h"
#include "query/results/results.h"

namespace tidemark {
namespace {

enum class Color : std::uint8_t { none, red, blue };
constexpr EnumName<Color> kColorNames[] = {{Color::none, "none"}, {Color::red, "red"}, {Color::blue, "blue"}};

struct Place {
  std::string file;
  std::uint32_t line = 0;
};
template <typename Visitor>
void describe(Visitor& v, const Place& place) {
  v.type("Place", "A place.", "shared");
  v.field("file", place.file, "as given");
  v.field("line", when(place.line != 0, place.line));
}

// Without a name: written into its containing object.
struct Size {
  std::uint64_t bytes = 0;
};
template <typename Visitor>
void describe(Visitor& v, const Size& size) {
  v.field("bytes", size.bytes);
}

struct Leaf {
  Place place;
  Size size;
  std::vector<Leaf> children;
};
template <typename Visitor>
void describe(Visitor& v, const Leaf& leaf) {
  v.type("Leaf", "A leaf.");
  v.part(leaf.place);
  v.part(leaf.size);
  v.field("children", leaf.children);
}

struct Unit {
  std::string name;
};
template <typename Visitor>
void describe(Visitor& v, const Leaf& leaf, const Unit& unit) {
  v.type("Measured", "A leaf in a unit.");
  v.field("text", std::to_string(leaf.size.bytes) + " " + unit.name, "a sentence");
}

struct Toy {
  bool good = true;
  double share = 0.5;
  Color color = Color::red;
  std::optional<std::string> remark;
  std::vector<Leaf> leaves;
  std::optional<Leaf> best;
  std::vector<std::optional<std::uint64_t>> counts;
  std::map<std::string, std::uint64_t> by_name;
  std::variant<std::monostate, std::uint64_t, std::string, std::vector<std::string>> value;
  Unit unit{"bytes"};
};
template <typename Visitor>
void describe(Visitor& v, const Toy& toy) {
  v.type("Toy", "What a `toy` is; null where it is none.");
  v.field("good", toy.good, "null is never said, nor nullable");
  v.field("share", toy.share);
  v.field("color", named<kColorNames, Color::none>(toy.color));
  v.field("side", one_of<"left", "right">("left"), "where it is");
  v.field_if(toy.remark.has_value(), "remark", toy.remark.value_or(""));
  v.field("leaves", toy.leaves, "largest first");
  v.field("measured", in(toy.leaves, toy.unit));
  v.field("best", in(toy.best, toy.unit));
  v.field("counts", toy.counts);
  v.field("by_name", toy.by_name);
  v.field("value", toy.value, "a|b");
}

DescribedResults toys() {
  DescribedResults results;
  results.commands = {
      {.name = "toy-box", .type = results.types.read<Toy>("toy_box"), .several = true, .in_python = true}};
  results.shared = {{"shared", "Shared."}};
  return results;
}

TEST(Describe, WritesTheJsonOfAResult) {
  Toy toy;
  EXPECT_EQ(to_object(toy).dump(),
            R"({"good":true,"share":0.5,"color":"red","side":"left","leaves":[],"measured":[],"best":null,"counts":[],)"
            R"("by_name":{},"value":null})");
  toy.remark = "new";
  toy.leaves = {{{"a.py", 3}, {7}, {{{"b.py", 0}, {1}, {}}}}};
  toy.best = toy.leaves[0];
  toy.counts = {1, std::nullopt};
  toy.by_name = {{"x", 2}};
  toy.value = std::vector<std::string>{"y"};
  EXPECT_EQ(to_object(toy).dump(),
            R"({"good":true,"share":0.5,"color":"red","side":"left","remark":"new","leaves":[{"file":"a.py","line":3,)"
            R"("bytes":7,"children":[{"file":"b.py","line":null,"bytes":1,"children":[]}]}],)"
            R"("measured":[{"text":"7 bytes"}],"best":{"text":"7 bytes"},"counts":[1,null],"by_name":{"x":2},)"
            R"("value":["y"]})");
}

TEST(Describe, PrintsOneResultOrSeveral) {
  Toy toy;
  const Json object = {{"bytes", 1}};
  EXPECT_EQ(print_json({object}), "{\n  \"bytes\": 1\n}\n");
  EXPECT_EQ(print_json({object, object}),
            "{\n  \"recordings\": [\n    {\n      \"bytes\": 1\n    },\n    {\n      \"bytes\": 1\n    }\n  ]\n}\n");
  EXPECT_EQ(print_json({{{"name", "\xff"}}}), "{\n  \"name\": \"\xEF\xBF\xBD\"\n}\n");
}

TEST(Describe, WritesASchema) {
  const DescribedResults results = toys();
  const Json schema = Json::parse(json_schema(results, results.commands));
  EXPECT_EQ(schema["title"], "tidemark toy-box --format json");
  EXPECT_EQ(schema["anyOf"].dump(),
            R"([{"$ref":"#/$defs/Toy"},{"type":"object","properties":{"recordings":{"type":"array",)"
            R"("items":{"$ref":"#/$defs/Toy"}}},"required":["recordings"]}])");
  const Json& toy = schema["$defs"]["Toy"];
  EXPECT_EQ(toy["required"].dump(),
            R"(["good","share","color","side","leaves","measured","best","counts","by_name","value"])");
  const Json& properties = toy["properties"];
  EXPECT_EQ(properties["good"].dump(), R"({"type":"boolean","description":"null is never said, nor nullable"})");
  EXPECT_EQ(properties["share"].dump(), R"({"type":"number"})");
  EXPECT_EQ(properties["color"].dump(), R"({"enum":["red","blue"]})");
  EXPECT_EQ(properties["side"].dump(), R"({"enum":["left","right"],"description":"where it is"})");
  EXPECT_EQ(properties["remark"].dump(), R"({"type":"string"})");
  EXPECT_EQ(properties["leaves"].dump(),
            R"({"type":"array","items":{"$ref":"#/$defs/Leaf"},"description":"largest first"})");
  EXPECT_EQ(properties["best"].dump(), R"({"anyOf":[{"$ref":"#/$defs/Measured"},{"type":"null"}]})");
  EXPECT_EQ(properties["counts"].dump(), R"({"type":"array","items":{"type":["integer","null"]}})");
  EXPECT_EQ(properties["by_name"].dump(), R"({"type":"object","additionalProperties":{"type":"integer"}})");
  EXPECT_EQ(properties["value"].dump(),
            R"({"anyOf":[{"type":"integer"},{"type":"string"},{"type":"array","items":{"type":"string"}},)"
            R"({"type":"null"}],"description":"a|b"})");
  EXPECT_EQ(schema["$defs"]["Leaf"]["properties"].dump(),
            R"({"file":{"type":"string","description":"as given"},"line":{"type":["integer","null"]},)"
            R"("bytes":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/Leaf"}}})");
}

TEST(Describe, WritesPython) {
  const DescribedResults results = toys();
  EXPECT_EQ(python_module(results, "toy_box"), R"("""What ``tidemark toy-box`` says."""

# Made by scripts/refresh_results.py from src/query/results: edit that.
# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.
from dataclasses import dataclass
from typing import Optional, Union

from tidemark.reading.rendering import Result
from tidemark.reading.results.shared import Place


@dataclass(frozen=True)
class Leaf(Place):
    """A leaf."""

    bytes: int
    children: "tuple[Leaf, ...]"


@dataclass(frozen=True)
class Measured:
    """A leaf in a unit."""

    text: str  #: a sentence


@dataclass(frozen=True, repr=False)
class Toy(Result):
    """What a ``toy`` is; None where it is none."""

    good: bool  #: None is never said, nor nullable
    share: float
    color: str  #: "red", "blue"
    side: str  #: "left", "right": where it is
    remark: Optional[str]
    leaves: tuple[Leaf, ...]  #: largest first
    measured: tuple[Measured, ...]
    best: Optional[Measured]
    counts: tuple[Optional[int], ...]
    by_name: dict[str, int]
    value: Optional[Union[int, str, list[str]]]  #: a|b
)");
  EXPECT_THAT(python_module(results, "shared"), ::testing::HasSubstr("\"\"\"Shared.\"\"\"\n"));
  EXPECT_THAT(python_module(results, "shared"),
              ::testing::HasSubstr("    file: str  #: as given\n    line: Optional[int]\n"));
}

TEST(Describe, WritesTypeScript) {
  const DescribedResults results = toys();
  EXPECT_THAT(typescript(results, results.commands), ::testing::EndsWith(R"(
/** A place. */
export interface Place {
  /** as given */
  file: string;
  line: number | null;
}

/** A leaf. */
export interface Leaf extends Place {
  bytes: number;
  children: Leaf[];
}

/** A leaf in a unit. */
export interface Measured {
  /** a sentence */
  text: string;
}

/** What a `toy` is; null where it is none. */
export interface Toy {
  /** null is never said, nor nullable */
  good: boolean;
  share: number;
  color: "red" | "blue";
  /** where it is */
  side: "left" | "right";
  remark?: string;
  /** largest first */
  leaves: Leaf[];
  measured: Measured[];
  best: Measured | null;
  counts: (number | null)[];
  by_name: Record<string, number>;
  /** a|b */
  value: number | string | string[] | null;
}

/** The documents of commands, by their names. */
export interface Documents {
  "toy-box": Toy | { recordings: Toy[] };
}
)"));
}

TEST(Describe, WritesATableOfKeys) {
  const DescribedResults results = toys();
  EXPECT_EQ(markdown(results, "toy_box"), R"(| key | value | meaning |
|---|---|---|
| `good` | boolean | null is never said, nor nullable |
| `share` | number |  |
| `color` | `"red"`, `"blue"` |  |
| `side` | `"left"`, `"right"` | where it is |
| `remark` | string; may be absent |  |
| `leaves` | list of objects | largest first |
| `leaves[].…` | keys of [Place](commands/index.md#place) | |
| `leaves[].bytes` | integer |  |
| `leaves[].children` | list of objects as `leaves[]` |  |
| `measured` | list of objects |  |
| `measured[].text` | string | a sentence |
| `best` | object as `measured[]` or null |  |
| `counts` | list of integers or null |  |
| `by_name` | object of integers |  |
| `value` | integer or string or list of strings or null | a\|b |
)");
  EXPECT_THAT(markdown(results, "shared"), ::testing::StartsWith("#### Place\n\nA place.\n\n| key |"));
}

struct Twice {
  Size size;
};
template <typename Visitor>
void describe(Visitor& v, const Twice& twice) {
  v.type("Twice", "");
  v.part(twice.size);
  v.field("bytes", twice.size.bytes);
}
struct OtherLeaf {
  Leaf leaf;
};
template <typename Visitor>
void describe(Visitor& v, const OtherLeaf& other) {
  v.type("Leaf", "");
  v.field("leaf", other.leaf.size.bytes);
}
struct Mixed {
  Leaf leaf;
  Twice twice;
  OtherLeaf other;
};
template <typename Visitor>
void describe(Visitor& v, const Mixed& mixed) {
  v.type("Mixed", "");
  v.field("leaf", mixed.leaf);
  v.field("twice", mixed.twice);
  v.field("other", mixed.other);
}

TEST(Describe, FindsContradictions) {
  DescribedResults results = toys();
  EXPECT_THAT(results.types.problems(), ::testing::IsEmpty());
  results.types.read<Mixed>("mixed");
  EXPECT_THAT(results.types.problems(),
              ::testing::ElementsAre("Leaf is of toy_box and mixed: its description has to name a module",
                                     "Twice has two fields bytes", "Leaf has two descriptions",
                                     "Leaf is of toy_box and mixed: its description has to name a module"));
}

TEST(Describe, KnowsWhatThePackageHas) {
  DescribedResults results = toys();
  EXPECT_TRUE(results.in_python("toy_box"));
  EXPECT_TRUE(results.in_python("shared"));
  results.commands[0].in_python = false;
  EXPECT_FALSE(results.in_python("shared"));
}

TEST(DescribedResults, AreWithoutContradictions) {
  EXPECT_THAT(described_results().types.problems(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace tidemark
