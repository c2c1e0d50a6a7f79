// Frames as PyTorch 2.15 and others write them, and the stacks that come of them.
#include "import/pytorch_snapshot/model/name_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyze/common/stack_names.h"
#include "store/symbols.h"

namespace tidemark::pytorch::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kLibraries = "/venv/lib/python3.11/site-packages/torch/lib/";
const std::string kApply = "(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)";

struct FileFrame {
  std::string function;
  std::string file;
  std::uint32_t line = 0;
  std::string node = {};
  std::string trace = {};
};

class NamedFrames {
 public:
  /// A snapshot with one stack; the innermost frame first, as in files.
  explicit NamedFrames(const std::vector<FileFrame>& frames) {
    Definitions& all = snapshot_.definitions;
    StackId stack;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const LocationId id{static_cast<std::uint32_t>(all.locations.size())};
      Location& location = all.locations.emplace_back();
      location.function = string(frame->function);
      location.file = string(frame->file);
      location.line = frame->line;
      if (!frame->node.empty()) snapshot_.generated_frames.push_back({id, string(frame->node), string(frame->trace)});
      all.stacks.push_back({stack, id});
      stack.value = static_cast<std::uint32_t>(all.stacks.size() - 1);
    }
    snapshot_.segments.emplace_back().stack = stack;
    name_frames(snapshot_);
  }

  [[nodiscard]] const std::string& mode() const { return snapshot_.definitions.process.stack_mode; }
  [[nodiscard]] NamedStack stack() const {
    Symbols symbols(snapshot_.definitions);
    return name_stack(symbols, snapshot_.segments.front().stack);
  }
  /// "function file:line", the outermost first; "n " before native ones.
  [[nodiscard]] std::vector<std::string> frames() const {
    std::vector<std::string> texts;
    for (const FrameName& frame : stack().frames) {
      const char* const kind = frame.kind == Location::Kind::python ? "" : "n ";
      texts.push_back(kind + frame.function + " " + std::string(base_name(frame.file)) + ":" +
                      std::to_string(frame.line));
    }
    return texts;
  }
  [[nodiscard]] std::string call_site() const { return stack().frames[stack().call_site].function; }

 private:
  StringId string(const std::string& text) {
    snapshot_.definitions.strings.push_back(text);
    return StringId{static_cast<std::uint32_t>(snapshot_.definitions.strings.size() - 1)};
  }

  Snapshot snapshot_;
};

TEST(NameFrames, OffsetsInLibrariesAreNoLines) {
  const NamedFrames named({{"torch::unwind::unwind()", kLibraries + "libtorch_cpu.so", 108146796},
                           {"??", kLibraries + "libc10_cuda.so", 0x514cd},
                           {"at::_ops::randn::call(c10::ArrayRef<c10::SymInt>)", kLibraries + "libtorch_cpu.so", 41},
                           {"??", "/usr/bin/python3.11", 5536661},
                           {"train", "/home/me/train.py", 9},
                           {"_PyEval_EvalFrameDefault", "/usr/bin/python3.11", 5421535},
                           {"<module>", "/home/me/train.py", 15},
                           {"__libc_start_main", "/lib/x86_64-linux-gnu/libc.so.6", 160516}});
  EXPECT_EQ(named.mode(), "both");
  EXPECT_THAT(named.frames(),
              ElementsAre("<module> train.py:15", "train train.py:9", "n python3.11+0x547b95 python3.11:0",
                          "n at::_ops::randn::call(c10::ArrayRef<c10::SymInt>) libtorch_cpu.so:0",
                          "n libc10_cuda.so+0x514cd libc10_cuda.so:0", "n torch::unwind::unwind() libtorch_cpu.so:0"));
  EXPECT_EQ(named.call_site(), "train");
}

TEST(NameFrames, SourcesOfNativeCodeKeepTheirLines) {
  const NamedFrames named({{"at::native::empty_cuda()", "/build/aten/src/RegisterCUDA_0.cpp", 77},
                           {"PyObject_Vectorcall", "/usr/local/src/conda/python-3.11.4/Objects/call.c", 92},
                           {"<lambda>", "<stdin>", 3},
                           {"_PyEval_EvalFrameDefault", "/usr/local/src/conda/python-3.11.4/Python/ceval.c", 4769},
                           {"main", "??", 0}});
  EXPECT_EQ(named.mode(), "both");
  EXPECT_THAT(named.frames(), ElementsAre("<lambda> <stdin>:3", "n PyObject_Vectorcall call.c:92",
                                          "n at::native::empty_cuda() RegisterCUDA_0.cpp:77"));
  EXPECT_EQ(named.call_site(), "<lambda>");
}

TEST(NameFrames, WithoutPythonTheAutogradNodeIsTheCallSite) {
  const FileFrame engine{"torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)",
                         kLibraries + "libtorch_cpu.so", 98695986};
  const FileFrame kernel{"at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", kLibraries + "libtorch_cpu.so", 5};
  const auto site_of = [&](const std::string& function) {
    const NamedFrames named({kernel, {function, kLibraries + "libtorch_cpu.so", 84006240}, engine});
    EXPECT_EQ(named.mode(), "native");
    EXPECT_EQ(named.frames().front(), "(backward) :0");
    EXPECT_EQ(named.frames().size(), 5U) << "native frames stay below";
    return named.call_site();
  };
  EXPECT_EQ(site_of("torch::autograd::generated::AddmmBackward0::apply" + kApply), "AddmmBackward0");
  EXPECT_EQ(site_of("torch::autograd::AccumulateGrad::apply"), "AccumulateGrad");
  EXPECT_EQ(site_of("torch::autograd::CppNode<mine::Scale>::apply" + kApply), "CppNode<mine::Scale>");
  EXPECT_EQ(site_of("(anonymous namespace)::MyBackward::apply" + kApply), "MyBackward");
  EXPECT_EQ(site_of("torch::autograd::InputMetadata::reduce_grad(at::Tensor&) const"), "InputMetadata::reduce_grad");
  EXPECT_EQ(site_of("??"), "Engine::evaluate_function");
}

TEST(NameFrames, PythonCodeOfANodeIsItsCallSite) {
  const NamedFrames named({{"at::_ops::mul_Tensor::call()", kLibraries + "libtorch_cpu.so", 5},
                           {"backward", "/home/me/train.py", 19},
                           {"torch::autograd::PyNode::apply" + kApply, kLibraries + "libtorch_python.so", 7},
                           {"torch::autograd::Engine::evaluate_function()", kLibraries + "libtorch_cpu.so", 9}});
  EXPECT_THAT(named.frames(), ElementsAre("n torch::autograd::Engine::evaluate_function() libtorch_cpu.so:0",
                                          "backward train.py:19", "n at::_ops::mul_Tensor::call() libtorch_cpu.so:0"));
  EXPECT_EQ(named.call_site(), "backward");
}

TEST(NameFrames, GeneratedCodeShowsTheLinesThatItWasMadeFrom) {
  const std::string trace =
      "  File \"/home/me/train.py\", line 30, in forward\n    y = self.block(x)\n"
      "  File \"/home/me/block.py\", line 10, in forward\n    return torch.relu(self.a(x))\n           ^^^^\n";
  const NamedFrames named({{"__call__", "/venv/lib/python3.11/site-packages/torch/_ops.py", 916},
                           {"forward", "fx_generated__oegwuo.py", 18, "relu", trace},
                           {"train", "/home/me/train.py", 50}});
  EXPECT_EQ(named.mode(), "python");
  EXPECT_THAT(named.frames(), ElementsAre("train train.py:50", "forward fx_generated__oegwuo.py:18",
                                          "forward train.py:30", "forward block.py:10", "__call__ _ops.py:916"));
  const NamedStack stack = named.stack();
  EXPECT_EQ(stack.frames[stack.call_site].file, "/home/me/block.py");
  EXPECT_EQ(stack.frames[1].source_nodes, "relu");
}

TEST(NameFrames, TracesOfOthersAreBounded) {
  std::string many;
  for (int line = 1; line <= 1000; ++line)
    many += "File \"/home/me/train.py\", line " + std::to_string(line) + ", in f\n";
  const NamedFrames long_one({{"forward", "fx_generated__a.py", 18, "relu", many}});
  EXPECT_EQ(long_one.frames().size(), 65U);
  for (const char* trace :
       {"File \"", "File \"a\", line", "File \"a\", line x, in f", "File \"a\", line 99999999999, in f",
        "File \", line 3, in f", "\n\n\n", "File \"a\", line 3"}) {
    const NamedFrames named({{"forward", "fx_generated__a.py", 18, "relu", trace}});
    EXPECT_EQ(named.frames().size(), 1U) << trace;
  }
}

// Nothing native is in a snapshot with stacks="python".
TEST(NameFrames, ProgramsWithoutASuffixArePythonWhereAllFramesMayBe) {
  const NamedFrames python({{"forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134},
                            {"main", "/home/me/bin/train", 9}});
  EXPECT_EQ(python.mode(), "python");
  EXPECT_EQ(python.call_site(), "main");
  const NamedFrames both({{"malloc", "/lib/libc10.so", 7}, {"main", "/usr/bin/python3", 9}});
  EXPECT_EQ(both.mode(), "native");
  EXPECT_THAT(NamedFrames({}).frames(), IsEmpty());
}

}  // namespace
}  // namespace tidemark::pytorch::testing
