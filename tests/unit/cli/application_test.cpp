#include "cli/application.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/reading.h"

namespace tidemark::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// Exit code and stderr of a command line.
std::pair<int, std::string> run(std::vector<const char*> words) {
  words.insert(words.begin(), "tidemark");
  CaptureStderr();
  const int code = run_application(static_cast<int>(words.size()), words.data());
  return {code, GetCapturedStderr()};
}

TEST(Application, SuggestsACommand) {
  EXPECT_EQ(closest_command("sumary"), "summary");
  EXPECT_EQ(closest_command("timline"), "timeline");
  EXPECT_EQ(closest_command("xyzzyx"), "");
  const auto [code, message] = run({"sumary", "x.tide"});
  EXPECT_EQ(code, kError);
  EXPECT_EQ(message, "tidemark: unknown command 'sumary'; did you mean 'summary'?\n");
}

TEST(Application, ExitsWithTwoOnMistakes) {
  EXPECT_EQ(run({}).first, kError);
  EXPECT_EQ(run({"summary"}).first, kError);
  EXPECT_EQ(run({"summary", "--format", "xml", "x.tide"}).first, kError);
  EXPECT_EQ(run({"table", "--at", "soon", "x.tide"}).first, kError);
  EXPECT_EQ(run({"tree", "--min-share", "lots", "x.tide"}).first, kError);
  EXPECT_EQ(run({"tree", "--depth", "0", "x.tide"}).first, kError);
  EXPECT_EQ(run({"timeline", "-o", "x.pdf", "x.tide"}).first, kError);
}

TEST(Application, NamesTheFileAndWhatToDo) {
  EXPECT_EQ(run({"summary", "nowhere.tide"}).second, "tidemark: nowhere.tide: no such file\n");
  const std::string directory = (std::filesystem::temp_directory_path() / "application_test").string();
  std::filesystem::create_directories(directory);
  EXPECT_THAT(run({"summary", directory.c_str()}).second, HasSubstr("is a directory; it contains no .tide files"));
  std::ofstream(directory + "/a.tide") << "text";
  EXPECT_THAT(run({"summary", directory.c_str()}).second,
              HasSubstr("name the recordings in it: " + directory + "/a.tide"));
  EXPECT_THAT(run({"summary", (directory + "/a.tide").c_str()}).second, HasSubstr(directory + "/a.tide"));
  EXPECT_THAT(run({"summary", "/dev/null"}).second, HasSubstr("not a regular file"));
  std::filesystem::remove_all(directory);
}

TEST(Application, EveryCommandHasExamples) {
  const Application application = make_application();
  for (const CLI::App* command : application.app->get_subcommands([](const CLI::App*) { return true; })) {
    EXPECT_THAT(command->get_footer(), HasSubstr("tidemark " + command->get_name())) << command->get_name();
    EXPECT_FALSE(command->get_group().empty());
  }
}

TEST(Application, EveryCommandAndOptionIsInTheManualPageAndTheDocs) {
  std::stringstream manual;
  manual << std::ifstream(SOURCE_DIR "/share/man/tidemark.1").rdbuf();
  std::stringstream page;
  page << std::ifstream(SOURCE_DIR "/docs/commands.md").rdbuf();
  std::string plain = manual.str();
  std::erase(plain, '\\');  // "\-\-format"
  const Application application = make_application();
  for (const CompletionCommand& command : completion_model(*application.app)) {
    EXPECT_THAT(page.str(), HasSubstr("## " + command.name));
    EXPECT_THAT(plain, HasSubstr("tidemark " + command.name));
    for (const CompletionOption& option : command.options) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(plain, HasSubstr(name)) << command.name;
        if (name == "-h" || name == "--help") continue;
        EXPECT_THAT(page.str(), HasSubstr(name)) << command.name;
      }
    }
  }
}

TEST(Completion, KnowsChoicesFromTheOptions) {
  const Application application = make_application();
  const CompletionModel model = completion_model(*application.app);
  bool found = false;
  for (const CompletionCommand& command : model) {
    if (command.name != "table") continue;
    for (const CompletionOption& option : command.options) {
      if (option.names != std::vector<std::string>{"--by"}) continue;
      found = true;
      EXPECT_EQ(option.choices,
                (std::vector<std::string>{"stack", "size", "device", "thread", "stream", "pool", "annotation"}));
      EXPECT_TRUE(option.takes_value);
    }
  }
  EXPECT_TRUE(found);
}

// What a shell offers, asked of the shell itself.
std::string bash_offers(const std::string& line) {
  const Application application = make_application();
  const std::string script = (std::filesystem::temp_directory_path() / "completion_test.bash").string();
  std::ofstream(script) << bash_completion(completion_model(*application.app)) << "COMP_WORDS=(" << line
                        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_tidemark\n"
                        << "echo \"${COMPREPLY[*]}\"\n";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("bash '" + script + "'").c_str(), "r"), &pclose);
  std::string output(4096, '\0');
  output.resize(fread(output.data(), 1, output.size(), pipe.get()));
  std::filesystem::remove(script);
  return output;
}

TEST(Completion, WorksInBash) {
  EXPECT_EQ(bash_offers("tidemark su"), "summary\n");
  EXPECT_EQ(bash_offers("tidemark table --by s"), "stack size stream\n");
  EXPECT_EQ(bash_offers("tidemark timeline --pl"), "--plot\n");
  EXPECT_EQ(bash_offers("tidemark export --to p"), "pytorch perfetto pprof\n");
  EXPECT_EQ(bash_offers("tidemark completion f"), "fish\n");
}

}  // namespace
}  // namespace tidemark::cli
