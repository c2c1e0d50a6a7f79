#include "model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "model/names.h"
#include "temporary_folder.h"
#include "unit/model/model_files.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::safetensors_bytes;
using testing::write_file;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() : folder_(temporary_.path() + "/") {}

  void write_model(const std::string& file, const std::string& tensor) const {
    const std::string header = "{\"" + tensor + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    write_file(folder_ + file, safetensors_bytes(header, 8));
  }
  [[nodiscard]] Result<Checkpoint> read(const std::vector<std::string>& files) const {
    std::vector<std::string> paths;
    for (const std::string& file : files) paths.push_back(folder_ + file);
    return read_checkpoint(paths);
  }
  [[nodiscard]] std::string problem(const std::vector<std::string>& files) const {
    const auto checkpoint = read(files);
    return checkpoint ? std::string() : checkpoint.error().message;
  }

  testing::TemporaryFolder temporary_;
  std::string folder_;
};

TEST_F(CheckpointTest, FolderWithAnIndexIsOneModel) {
  write_model("model-2.safetensors", "layers.2.weight");
  write_model("model-1.safetensors", "layers.10.weight");
  write_file(folder_ + "model.safetensors.index.json",
             R"({"weight_map":{"layers.10.weight":"model-1.safetensors","layers.2.weight":"model-2.safetensors"}})");
  const auto checkpoint = read({""});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->files.size(), 2U);
  ASSERT_EQ(checkpoint->tensors.size(), 2U);
  EXPECT_EQ(checkpoint->tensors.front().name, "layers.2.weight");
  EXPECT_EQ(checkpoint->files[checkpoint->tensors.front().file].path, folder_ + "model-2.safetensors");
}

TEST_F(CheckpointTest, InvalidIndexes) {
  write_model("a.safetensors", "w");
  write_file(folder_ + "index.json", R"({"weight_map":{"v":"a.safetensors"}})");
  EXPECT_THAT(problem({"index.json"}), HasSubstr("says that a.safetensors has v, which it has not"));
  write_file(folder_ + "index.json", R"({"weight_map":{"v":"b.safetensors"}})");
  EXPECT_THAT(problem({"index.json"}), HasSubstr("names b.safetensors, which is not beside it"));
  for (const char* const name : {"../a.safetensors", "/etc/passwd", "..", ""}) {
    write_file(folder_ + "index.json", std::string(R"({"weight_map":{"v":")") + name + "\"}}");
    EXPECT_THAT(problem({"index.json"}), HasSubstr("no name of a file beside it")) << name;
  }
  write_file(folder_ + "index.json", std::string(100'000, '['));
  EXPECT_THAT(problem({"index.json"}), HasSubstr("no JSON object"));
}

TEST_F(CheckpointTest, TensorInTwoFilesIsAnError) {
  write_model("a.safetensors", "w");
  write_model("b.safetensors", "w");
  EXPECT_THAT(problem({"a.safetensors", "b.safetensors"}), HasSubstr("b.safetensors: has w, which"));
}

TEST_F(CheckpointTest, UnreadableFiles) {
  std::filesystem::create_directory(folder_ + "empty");
  EXPECT_THAT(problem({"empty"}), HasSubstr("no safetensors file and no index"));
  EXPECT_THAT(problem({"nowhere.safetensors"}), HasSubstr("nowhere.safetensors: "));
  write_file(folder_ + "cut.safetensors", safetensors_bytes("{}", 0).substr(0, 9));
  EXPECT_THAT(problem({"cut.safetensors"}), HasSubstr("too few"));
  ASSERT_EQ(::mkfifo((folder_ + "fifo").c_str(), 0600), 0);
  EXPECT_THAT(problem({"fifo"}), HasSubstr("fifo: not a regular file"));
}

// Each module that a name is in would be kept.
TEST_F(CheckpointTest, PartsOfAllNamesHaveAnEnd) {
  std::string header = "{";
  for (int number = 0; number < 152'000; ++number) {
    header += (number == 0 ? "\"" : ",\"") + std::to_string(number) + std::string(32, '.') +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  write_file(folder_ + "many.safetensors", safetensors_bytes(header + "}", 0));
  EXPECT_THAT(problem({"many.safetensors"}), HasSubstr("more than 5000000 parts"));
}

TEST_F(CheckpointTest, AdapterConfigurationBesideTheFile) {
  write_model("adapter_model.safetensors", "q.lora_A.weight");
  write_file(folder_ + "adapter_config.json",
             R"({"r":8,"lora_alpha":16.5,"target_modules":["q","v"],"base_model_name_or_path":"a/b"})");
  const auto checkpoint = read({""});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_TRUE(checkpoint->adapter);
  EXPECT_EQ(checkpoint->adapter->rank, 8U);
  EXPECT_EQ(checkpoint->adapter->alpha, 16.5);
  EXPECT_EQ(checkpoint->adapter->base_model, "a/b");
  EXPECT_THAT(checkpoint->adapter->target_modules, ElementsAre("q", "v"));
}

TEST(Names, NumbersAreInOrder) {
  EXPECT_TRUE(name_less("layers.2.w", "layers.10.w"));
  EXPECT_FALSE(name_less("layers.10.w", "layers.2.w"));
  EXPECT_TRUE(name_less("layers.2", "layers.2.w"));
  EXPECT_TRUE(name_less("layers.99999999999999999999", "layers.100000000000000000000"));
  EXPECT_TRUE(name_less("a.01", "a.1"));
  EXPECT_FALSE(name_less("a.1", "a.01"));
  EXPECT_FALSE(name_less("a", "a"));
  EXPECT_TRUE(name_less("a.0", "a.b"));
  EXPECT_EQ(layer_of_module("model.layers.3.mlp.0"), "model.layers.3");
  EXPECT_EQ(layer_of_module("model.norm"), "model.norm");
}

}  // namespace
}  // namespace tidemark
