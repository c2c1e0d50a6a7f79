// What files that torch.compile generated say: tests/data/inductor holds pieces of such files, as PyTorch wrote them
// for two layers of normalization, Linear, GELU and Linear, and a Linear with softmax behind them.
#include "collect/recorder/lanes/generated_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// One piece: its comments, and where the statements that assign to a buffer stand.
struct Piece {
  explicit Piece(const std::string& name) {
    const auto content = read_generated_file(std::string(TIDEMARK_INDUCTOR) + "/" + name + ".txt");
    EXPECT_TRUE(content.has_value()) << name;
    text = content.value_or("");
    comments = generated_comments(text);
  }
  /// Nodes of the line that begins with "buffer = "; "-" where none are known.
  [[nodiscard]] std::string nodes(const std::string& buffer) const {
    const std::size_t at = text.find(" " + buffer + " = ");
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const auto nodes = comments.nodes.find(static_cast<std::uint32_t>(newlines) + 1);
    return nodes == comments.nodes.end() ? "-" : nodes->second;
  }

  std::string text;
  GeneratedComments comments;
};

TEST(GeneratedComments, NameTheNodesThatABufferIsFor) {
  const Piece piece("torch_2_15_cuda_forward");
  EXPECT_EQ(piece.comments.graph, CompiledGraph::forward);
  EXPECT_EQ(piece.nodes("buf0"), "layer_norm");
  EXPECT_EQ(piece.nodes("buf1"), "layer_norm") << "it has another name when the kernel uses it";
  EXPECT_EQ(piece.nodes("buf4"), "layer_norm");
  EXPECT_EQ(piece.nodes("buf5"), "hidden");
  EXPECT_EQ(piece.nodes("buf6"), "hidden_1");
  EXPECT_EQ(piece.nodes("buf7"), "linear_1");
  EXPECT_EQ(piece.nodes("buf12"), "-") << "the piece ends before its kernel";
}

TEST(GeneratedComments, OfABackwardGraph) {
  const Piece piece("torch_2_11_cuda_backward");
  EXPECT_EQ(piece.comments.graph, CompiledGraph::backward);
  EXPECT_EQ(piece.nodes("buf1"), "mul_10, sum_2, neg, fma");
  EXPECT_EQ(piece.nodes("buf2"), "scores, permute_5, mm");
  EXPECT_EQ(piece.nodes("buf4"), "sum_3");
}

TEST(GeneratedComments, KernelsForTheCpuHaveNone) {
  const Piece piece("torch_2_15_cpu_forward");
  EXPECT_EQ(piece.comments.graph, CompiledGraph::forward);
  EXPECT_EQ(piece.nodes("buf0"), "-");
  EXPECT_EQ(piece.nodes("buf4"), "-") << "not those of the next kernel, which only reads it";
  EXPECT_EQ(piece.nodes("buf5"), "hidden");
  EXPECT_EQ(piece.nodes("buf6"), "-");
}

TEST(GeneratedComments, OfKernelsThatAllocateThemselves) {
  const GeneratedComments comments = generated_comments(
      "# AOT ID: ['12_inference']\n"
      "        # Topologically Sorted Source Nodes: [x], Original ATen: [aten.convolution]\n"
      "        buf0 = extern_kernels.convolution(arg1_1, arg0_1, stride=(1, 1))\n"
      "        assert_size_stride(buf0, (8, 64, 56, 56), (200704, 3136, 56, 1))\n"
      "        buf1 = other(buf0)\n");
  EXPECT_EQ(comments.graph, CompiledGraph::inference);
  ASSERT_EQ(comments.nodes.size(), 1U);
  EXPECT_EQ(comments.nodes.at(3), "x");
}

TEST(GeneratedComments, OfAnythingElseAreNone) {
  for (const std::string text : {"", "\n\n", "# AOT ID: [", "buf", " = empty_strided", "buf0 = empty_strided; del buf0",
                                 "# Source Nodes: [", "\xFF\xFE buf1 = buf2; del ", "# AOT ID: ['0_sideways']"}) {
    const GeneratedComments comments = generated_comments(text);
    EXPECT_EQ(comments.graph, CompiledGraph::unknown) << text;
    EXPECT_THAT(comments.nodes, IsEmpty()) << text;
  }
}

TEST(GeneratedComments, LongListsOfNodesAreCut) {
  std::string names = "node_0";
  for (int number = 1; number < 100; ++number) names += ", node_" + std::to_string(number);
  const GeneratedComments comments = generated_comments("# Source Nodes: [" + names + "], x\nbuf0 = f()\n");
  const std::string& nodes = comments.nodes.at(2);
  EXPECT_LT(nodes.size(), 210U);
  EXPECT_TRUE(nodes.starts_with("node_0, node_1, ")) << nodes;
  EXPECT_TRUE(nodes.ends_with(", \xE2\x80\xA6")) << nodes;
}

TEST(ReadGeneratedFile, TakesNothingThatIsNoFileOfItsOwn) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(read_generated_file(pipe).has_value()) << "and does not wait for a writer";
  EXPECT_FALSE(read_generated_file(folder.path()).has_value());
  EXPECT_FALSE(read_generated_file(folder.path() + "/absent").has_value());
  std::ofstream(folder.path() + "/large").seekp(33 << 20).put('x');
  EXPECT_FALSE(read_generated_file(folder.path() + "/large").has_value());
}

TEST(StackTrace, AsPythonPrintsIt) {
  EXPECT_THAT(
      parse_stack_trace("  File \"/home/me/model.py\", line 28, in forward\n    x = block(x)\n        ^^^^^^^^\n"
                        "  File \"a \", line 3, in b.py\", line 15, in <lambda>\n    hidden = self.up(x)\n"),
      ElementsAre(SourceFrame{"/home/me/model.py", "forward", 28},
                  SourceFrame{"a \", line 3, in b.py", "<lambda>", 15}));
  for (const char* text : {"", "File", "File \"", "File \"\", line ", "File \"x\", line y, in f",
                           "File \"x\", line 99999999999, in f", "File \"x\", line 3 in f", "\", line 3, in f"}) {
    EXPECT_THAT(parse_stack_trace(text), IsEmpty()) << text;
  }
  std::string deep;
  for (int line = 1; line <= 100; ++line) deep += "File \"x\", line " + std::to_string(line) + ", in f\n";
  const std::vector<SourceFrame> frames = parse_stack_trace(deep);
  ASSERT_EQ(frames.size(), 64U);
  EXPECT_EQ(frames.back().line, 100U);
}

TEST(GeneratedFile, FindsWhatALineWasMadeFrom) {
  GeneratedFile file({});
  file.add_trace("File \"a.py\", line 1, in f");
  file.add(10, 1);
  file.add(20, 0);
  file.add_trace("File \"a.py\", line 2, in f");
  file.add(30, 2);
  file.add(40, 7);
  EXPECT_THAT(file.sources(9), IsEmpty());
  EXPECT_THAT(file.sources(10), ElementsAre(SourceFrame{"a.py", "f", 1}));
  EXPECT_EQ(file.sources(19), file.sources(10));
  EXPECT_EQ(file.sources(20), file.sources(30)) << "it prepares what follows";
  EXPECT_EQ(file.sources(30).at(0).line, 2U);
  EXPECT_EQ(file.sources(1000), file.sources(30)) << "a trace that never came, at the end";
  EXPECT_THAT(GeneratedFile({}).sources(1), IsEmpty());
}

}  // namespace
}  // namespace tidemark::testing
