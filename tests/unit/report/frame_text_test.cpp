#include "query/words/frame_text.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

FrameName python(const std::string& function, const std::string& file, std::uint32_t line) {
  return {Location::Kind::python, function, file, line};
}

TEST(ShortPath, KeepsTheDistinguishingPart) {
  EXPECT_EQ(short_path("/home/me/project/src/models/llama.py"), "models/llama.py");
  EXPECT_EQ(short_path("/venv/lib/python3.12/site-packages/transformers/trainer.py"), "transformers/trainer.py");
  EXPECT_EQ(short_path("/usr/lib/python3/dist-packages/torch/nn/functional.py"), "torch/nn/functional.py");
  EXPECT_EQ(short_path("/usr/lib/python3.12/copy.py"), "copy.py");
  EXPECT_EQ(short_path("train.py"), "train.py");
  EXPECT_EQ(short_path("<string>"), "<string>");
  EXPECT_EQ(short_path("/train.py"), "/train.py");
  EXPECT_EQ(short_path(""), "");
}

TEST(ShortFunction, DropsParameters) {
  EXPECT_EQ(short_function("at::native::empty_cpu(c10::ArrayRef<long>, bool)"), "at::native::empty_cpu");
  EXPECT_EQ(short_function("void f<int (*)(char)>::g(int)"), "void f<int (*)(char)>::g");
  EXPECT_EQ(short_function("at::(anonymous namespace)::wrapper(long)"), "at::(anonymous namespace)::wrapper");
  EXPECT_EQ(short_function("Thing::operator()(int) const"), "Thing::operator()");
  EXPECT_EQ(short_function("operator<<(std::ostream&, int)"), "operator<<");
  EXPECT_EQ(short_function("Pointer::operator->() const"), "Pointer::operator->");
  EXPECT_EQ(short_function("malloc"), "malloc");
  EXPECT_EQ(short_function("operator"), "operator");
  EXPECT_EQ(short_function(""), "");
}

TEST(FrameText, NamesPythonPlaces) {
  EXPECT_EQ(frame_text(python("step", "/home/me/train.py", 31)), "step (me/train.py:31)");
  EXPECT_EQ(frame_text(python("step", "train.py", 0)), "step (train.py)");
  EXPECT_EQ(frame_text(python("make.<locals>.wrapper", "t.py", 2)), "wrapper (t.py:2)");
}

TEST(FrameText, SaysWhichGraphCompiledCodeIsOf) {
  FrameName line = python("Block.forward", "/home/me/model.py", 31);
  line.graph = CompiledGraph::backward;
  EXPECT_EQ(frame_text(line), "Block.forward [compiled backward] (me/model.py:31)");
  EXPECT_EQ(frame_text(line, FileDetail::line_only), "Block.forward:31 [compiled backward]");
  line.graph = CompiledGraph::unknown;
  EXPECT_EQ(frame_text(line), "Block.forward [compiled] (me/model.py:31)");
  line.graph = CompiledGraph::forward;
  line.source_nodes = "x, linear_1";
  EXPECT_EQ(function_text(line), "Block.forward [compiled forward: x, linear_1]");
}

TEST(FrameText, NamesNativePlaces) {
  EXPECT_EQ(frame_text({Location::Kind::native, "at::empty(int)", "/usr/lib/libtorch_cpu.so", 0}),
            "at::empty (libtorch_cpu.so)");
  EXPECT_EQ(frame_text({Location::Kind::native, "libfoo.so+0x12", "/usr/lib/libfoo.so", 0}), "libfoo.so+0x12");
}

TEST(FrameText, ShortensTheFileBeforeTheFunction) {
  const FrameName frame =
      python("LlamaMLP.forward", "/venv/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py", 155);
  EXPECT_EQ(fit_frame(frame, 0), "LlamaMLP.forward (transformers/models/llama/modeling_llama.py:155)");
  EXPECT_EQ(fit_frame(frame, 60), "LlamaMLP.forward (transformers/\xE2\x80\xA6/modeling_llama.py:155)");
  EXPECT_EQ(fit_frame(frame, 40), "LlamaMLP.forward (modeling_llama.py:155)");
  EXPECT_EQ(fit_frame(frame, 39), "LlamaMLP.forward:155");
  EXPECT_EQ(fit_frame(python("step", "t.py", 0), 8), "step");
}

}  // namespace
}  // namespace tidemark
