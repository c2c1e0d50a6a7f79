#include "cli/completion.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/application.h"
#include "temporary_folder.h"

namespace tidemark::cli {
namespace {

using testing::TemporaryFolder;

// A name in a file that a shell would expand.
constexpr const char* kHostile = "it's; $(touch pwned) `touch pwned` \"$HOME\" \\ *";

TEST(Completion, KnowsChoicesFromTheOptions) {
  const Application application = make_application();
  const CommandModel program = command_model(*application.app);
  bool found = false;
  for (const CommandModel& command : program.commands) {
    if (command.name != "table") continue;
    for (const OptionModel& option : command.options) {
      if (option.names != std::vector<std::string>{"--by"}) continue;
      found = true;
      EXPECT_EQ(option.choices(),
                (std::vector<std::string>{"stack", "size", "device", "thread", "stream", "pool", "annotation",
                                          "category", "component", "layer", "module", "phase", "step"}));
    }
  }
  EXPECT_TRUE(found);
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string output(16384, '\0');
  output.resize(fread(output.data(), 1, output.size(), pipe.get()));
  return output;
}

bool installed(const std::string& shell) {
  return !output_of("command -v " + shell).empty();
}

CommandModel model() {
  return command_model(*make_application().app);
}

// Beside a file "a b.tide", a program "tidemark" that prints possible output of `tidemark completion` for that file.
void write_program(const TemporaryFolder& folder) {
  const std::string file = folder.write("a b.tide", "a recording");
  folder.write("marks", std::string("epoch 1\n") + kHostile + "\n");
  std::filesystem::permissions(folder.write("tidemark", "#!/bin/sh\n[ \"$1 $3 $4\" = \"completion -- " + file +
                                                            "\" ] || exit 1\n"
                                                            "[ $2 = devices ] && printf '%s\\n' cpu cuda:0 cuda:10\n"
                                                            "[ $2 = marks ] && cat '" +
                                                            folder.at("marks") + "'\n"),
                               std::filesystem::perms::owner_all);
}

// The shell's own completions. `program`: called for names in files.
std::string bash_offers(const std::string& line, const std::string& program = "false") {
  const TemporaryFolder folder;
  const std::string script = folder.write("script", bash_completion(model()) + "COMP_WORDS=(" + line +
                                                        ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_tidemark '" +
                                                        program + "'\necho \"${COMPREPLY[*]}\"\n");
  return output_of("bash '" + script + "'");
}

TEST(Completion, WorksInBash) {
  EXPECT_EQ(bash_offers("tidemark su"), "summary\n");
  EXPECT_EQ(bash_offers("tidemark table --by s"), "stack size stream step\n");
  EXPECT_EQ(bash_offers("tidemark timeline --pl"), "--plot\n");
  EXPECT_EQ(bash_offers("tidemark export --to p"), "pytorch perfetto pprof parquet\n");
  EXPECT_EQ(bash_offers("tidemark completion f"), "fish\n");
  EXPECT_EQ(bash_offers("tidemark help ti"), "timeline\n");
}

TEST(Completion, OffersNamesInFilesOfWhichNothingIsExpanded) {
  const TemporaryFolder folder;
  write_program(folder);
  const std::string program = folder.at("tidemark");
  const std::string words = "tidemark table '" + folder.path() + "/a\\ b.tide' ";

  EXPECT_EQ(bash_offers(words + "--device c", program), "cpu cuda:0 cuda:10\n");
  EXPECT_EQ(bash_offers(words + "--device cuda : 1", program), "10\n") << "what follows the colon";
  EXPECT_EQ(bash_offers(words + "--at e", program), "end epoch\\ 1\n");
  EXPECT_EQ(bash_offers("tidemark table '\"" + folder.at("a b.tide") + "\"' --device cp", program), "cpu\n");
  EXPECT_EQ(bash_offers("tidemark table nowhere.tide --at e", program), "end\n");
  const std::string offered = bash_offers(words + "--at it", program);
  // Read by a shell again, it is one word: the name.
  const std::string script = folder.write("script", "set -- " + offered + "printf '%s\\n' \"$#\" \"$1\"\n");
  EXPECT_EQ(output_of("bash '" + script + "'"), std::string("1\n") + kHostile + "\n");
  EXPECT_FALSE(std::filesystem::exists("pwned"));
}

// zsh completes only at a terminal: an interactive shell completes each line of the file `lines` as soon as it could be
// edited, and writes the added text to a file.
constexpr const char* kZshrc = R"(
fpath=($ZDOTDIR $fpath)
path=($ZDOTDIR $path)
autoload -U compinit && compinit -D -u
compadd() {
  local -a offered
  if [[ $* != *-[OAD]\ * ]]; then
    builtin compadd -A offered "$@"
    print -rn -- "$offered" >>$ZDOTDIR/offered
  fi
  builtin compadd "$@"
}
zle-line-init() {
  for BUFFER in "${(@f)$(<$ZDOTDIR/lines)}"; do
    CURSOR=$#BUFFER
    zle complete-word
    print >>$ZDOTDIR/offered
  done
  exit
}
zle -N zle-line-init
)";

TEST(Completion, WorksInZsh) {
  if (!installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  const TemporaryFolder folder;
  write_program(folder);
  folder.write(".zshrc", kZshrc);
  folder.write("_tidemark", zsh_completion(model()));
  const std::string words = "tidemark table " + folder.path() + "/a\\ b.tide ";
  folder.write("lines", "tidemark su\ntidemark table --by s\ntidemark timeline --pl\ntidemark completion f\n" + words +
                            "--device cuda\n" + words + "--at e\n" + words + "--at it\n");
  output_of("ZDOTDIR='" + folder.path() +
            "' zsh -fc 'zmodload zsh/zpty; zpty shell zsh -d -i; while zpty -r shell; do :; done'");
  const std::string offered = output_of("cat '" + folder.at("offered") + "'");
  const std::string plain = "summary\nstack size stream step\n--plot\nfish\ncuda:0 cuda:10\nepoch\\ 1 end\n";
  ASSERT_EQ(offered.substr(0, plain.size()), plain);
  const std::string script = folder.write("script", "print -rl -- " + offered.substr(plain.size()));
  EXPECT_EQ(output_of("zsh -f '" + script + "'"), std::string(kHostile) + "\n") << "one word: the name";
  EXPECT_FALSE(std::filesystem::exists("pwned"));
}

TEST(Completion, WorksInFish) {
  if (!installed("fish")) GTEST_SKIP() << "fish is not installed";
  const TemporaryFolder folder;
  write_program(folder);
  const std::string script = folder.write("tidemark.fish", fish_completion(model()));
  // The names alone, without their descriptions.
  const auto offers = [&](const std::string& line) {
    return output_of("PATH='" + folder.path() + "':$PATH HOME='" + folder.path() + "' fish --no-config -c \"source '" +
                     script + "'; complete -C '" + line + "'\" | cut -f 1");
  };
  EXPECT_EQ(offers("tidemark su"), "summary\n");
  EXPECT_EQ(offers("tidemark table --by s"), "size\nstack\nstep\nstream\n");
  EXPECT_EQ(offers("tidemark timeline --pl"), "--plot\n");
  EXPECT_EQ(offers("tidemark completion f"), "fish\n");
  const std::string words = "tidemark table " + folder.path() + "/a\\\\ b.tide ";
  EXPECT_EQ(offers(words + "--device cuda"), "cuda:0\ncuda:10\n");
  EXPECT_EQ(offers(words + "--at e"), "end\nepoch 1\n");
}

}  // namespace
}  // namespace tidemark::cli
