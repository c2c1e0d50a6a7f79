#include "cli/application.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/reading.h"
#include "temporary_folder.h"

namespace tidemark::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// Exit code and stderr of a command line.
std::pair<int, std::string> run(std::vector<const char*> words) {
  words.insert(words.begin(), "tidemark");
  CaptureStderr();
  const int code = run_application(static_cast<int>(words.size()), words.data());
  return {code, GetCapturedStderr()};
}

// Exit code and stdout.
std::pair<int, std::string> printed(std::vector<const char*> words) {
  words.insert(words.begin(), "tidemark");
  ::testing::internal::CaptureStdout();
  const int code = run_application(static_cast<int>(words.size()), words.data());
  return {code, ::testing::internal::GetCapturedStdout()};
}

TEST(Application, SuggestsACommand) {
  EXPECT_EQ(closest_command("sumary"), "summary");
  EXPECT_EQ(closest_command("timline"), "timeline");
  EXPECT_EQ(closest_command("xyzzyx"), "");
  const auto [code, message] = run({"sumary", "x.tide"});
  EXPECT_EQ(code, kError);
  EXPECT_EQ(message, "tidemark: unknown command 'sumary'; did you mean `tidemark summary`?\n");
  const std::pair<const char*, const char*> meant[] = {{"watch", "tidemark top"},
                                                       {"mem", "tidemark summary"},
                                                       {"../oom.pickle", "tidemark summary ../oom.pickle"},
                                                       {"train.py", "tidemark run -- python train.py"}};
  for (const auto& [word, command] : meant) EXPECT_THAT(run({word}).second, HasSubstr(command));
  EXPECT_THAT(run({"xyzzyx"}).second, HasSubstr("see `tidemark --help`"));
  EXPECT_THAT(run({"oom", "oom.pickle"}).second, HasSubstr("tidemark explain oom.pickle"));
  EXPECT_THAT(run({"fragment", "a.pickle.xz"}).second, HasSubstr("tidemark fragmentation a.pickle.xz"));
  EXPECT_THAT(run({"run"}).second, HasSubstr("for example: tidemark run -- python train.py"));
}

TEST(Application, SuggestsAnOption) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{"run", "--kepp=10min", "--", "true"}, "unknown option --kepp; did you mean --keep?"},
      {{"run", "--stakcs", "both", "--", "true"}, "unknown option --stakcs; did you mean --stacks?"},
      {{"run", "-q", "--outptu", "a.tide", "true", "--epochs"}, "unknown option --outptu; did you mean --output?"},
      {{"plan", "--gpuu", "L4", "--", "true"}, "unknown option --gpuu; did you mean --gpu?"},
      {{"summary", "x.tide", "--fromat", "json"}, "unknown option --fromat; did you mean --format?"},
      {{"summary", "-x", "x.tide"}, "unknown option -x"},
      {{"table", "--by", "pol", "x.tide"}, "did you mean 'pool'?"}};
  for (const auto& [words, message] : cases) {
    const auto [code, error] = run(words);
    EXPECT_EQ(code, kError);
    EXPECT_THAT(error, HasSubstr(message));
  }
  // Words after the program belong to the program; a value may begin with a dash.
  EXPECT_THAT(run({"plan", "--gpu", "--x", "true", "--kepp"}).second, HasSubstr("--gpu --x: unknown GPU"));
}

TEST(Application, PointsToTheCommandForARecordingOrAProcess) {
  EXPECT_EQ(run({"leak", "a b.tide"}),
            std::pair(kError, std::string("tidemark: `tidemark leak` watches running processes; to read a recording: "
                                          "tidemark leaks 'a b.tide'\n")));
  EXPECT_THAT(run({"leaks", "--pid", "7"}).second, HasSubstr("to watch a running process: tidemark leak --pid PID"));
}

TEST(Application, TakesTheNewestRecordingHere) {
  const testing::TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(run({"summary"}).second, HasSubstr("no FILE given, and no recording (*.tide) in this folder"));
  std::ofstream("old.tide") << "text";
  std::ofstream("new.tide") << "text";
  std::filesystem::last_write_time("old.tide", std::filesystem::last_write_time("new.tide") - std::chrono::hours(1));
  EXPECT_THAT(run({"summary"}).second, HasSubstr("reading new.tide, the newest recording in this folder"));
  EXPECT_THAT(run({"leaks"}).second, HasSubstr("new.tide is not a tidemark recording"));
  std::filesystem::current_path(before);
}

TEST(Application, ExitsWithTwoOnMistakes) {
  EXPECT_EQ(run({}).first, kError);
  EXPECT_EQ(run({"summary"}).first, kError);
  EXPECT_EQ(run({"summary", "--format", "xml", "x.tide"}).first, kError);
  EXPECT_EQ(run({"table", "--at", "soon", "x.tide"}).first, kError);
  EXPECT_EQ(run({"tree", "--min-share", "lots", "x.tide"}).first, kError);
  EXPECT_EQ(run({"tree", "--depth", "0", "x.tide"}).first, kError);
  EXPECT_EQ(run({"timeline", "-o", "x.pdf", "x.tide"}).first, kError);
  for (const char* interval : {"0", "2h", "x", "-5ms", "nan", "61min"}) {
    EXPECT_THAT(run({"run", "--sample-interval", interval, "true"}).second,
                HasSubstr("expected a time from 1ms to 3600s, such as 50ms or 2s"));
  }
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
    if (command->get_group().empty()) {
      EXPECT_EQ(command->get_name(), "recorder") << "all others are for people";
    } else {
      EXPECT_THAT(command->get_footer(), HasSubstr("tidemark " + command->get_name())) << command->get_name();
    }
  }
}

TEST(Application, EveryCommandAndOptionIsInTheManualPageAndOnThePageOfTheCommand) {
  std::stringstream manual;
  manual << std::ifstream(MANUAL_PAGE).rdbuf();
  std::string plain = manual.str();
  std::erase(plain, '\\');  // "\-\-format"
  const Application application = make_application();
  for (const CommandModel& command : command_model(*application.app).commands) {
    std::stringstream page;
    page << std::ifstream(SOURCE_DIR "/docs/commands/" + command.name + ".md").rdbuf();
    EXPECT_THAT(page.str(), StartsWith("# " + command.name + "\n"));
    EXPECT_THAT(plain, HasSubstr(".SS \"tidemark " + command.name + "\""));
    for (const OptionModel& option : command.options) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(plain, HasSubstr(name)) << command.name;
        if (name == "-h" || name == "--help") continue;
        EXPECT_THAT(page.str(), HasSubstr(name)) << command.name;
      }
    }
  }
}

// The parser's own texts for options: types, ranges and units.
constexpr const char* kParserText[] = {"FLOAT", "UINT", "TEXT", ":SIZE", " in [", "REQUIRED", "FILE FILE"};

TEST(Help, IsInTheTermsOfThePeopleWhoReadIt) {
  const Application application = make_application();
  CommandModel program = command_model(*application.app);
  program.commands.push_back(program);
  for (const CommandModel& command : program.commands) {
    const std::string text = help_text(command, 100);
    for (const char* parser : kParserText) EXPECT_THAT(text, Not(HasSubstr(parser))) << command.name;
    EXPECT_THAT(text, HasSubstr("Usage: tidemark"));
  }
}

TEST(Help, KeepsToTheWidth) {
  const Application application = make_application();
  for (const std::size_t width : {40U, 80U, 100U}) {
    for (const CommandModel& command : command_model(*application.app).commands) {
      std::istringstream lines(help_text(command, width));
      for (std::string line; std::getline(lines, line);) {
        // Names (in a narrow terminal) and examples may be longer, descriptions not.
        const std::size_t indent = line.find_first_not_of(' ');
        if (line.starts_with("  tidemark ") || (width == 40 && indent > 0 && indent < width / 3)) continue;
        EXPECT_LE(line.size(), width) << command.name << ": " << line;
      }
    }
  }
}

TEST(Help, IsAsWideAsTheTerminal) {
  EXPECT_EQ(help_width(-1), 80U);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  for (const auto& [columns, expected] :
       std::vector<std::pair<unsigned short, std::size_t>>{{60, 60}, {200, 100}, {9, 40}, {0, 80}}) {
    winsize size{};
    size.ws_col = columns;
    ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(help_width(terminal), expected);
  }
  close(terminal);
}

TEST(Help, ShowsDefaultsUsageAndWhatIsRequired) {
  const Application application = make_application();
  const auto help = [&](const std::string& name) {
    for (const CommandModel& command : command_model(*application.app).commands) {
      if (command.name == name) return help_text(command, 200);
    }
    return std::string();
  };
  const std::string run = help("run");
  EXPECT_THAT(run, HasSubstr("Usage: tidemark run [OPTIONS] [--] PROGRAM [ARGS]...\n"));
  EXPECT_THAT(run, HasSubstr("  -o, --output FILE       "));
  EXPECT_THAT(run, HasSubstr("[default: PROGRAM-DATE-TIME.tide]"));
  EXPECT_THAT(run, HasSubstr("[default: python]"));
  EXPECT_THAT(run, HasSubstr("(1ms to 1 hour) [default: 100ms]"));
  EXPECT_THAT(run, HasSubstr("[default: off]"));
  EXPECT_THAT(run, HasSubstr("can be read while the program runs"));
  EXPECT_THAT(help("summary"), HasSubstr("can be read while their programs run"));
  const std::string table = help("table");
  EXPECT_THAT(table, HasSubstr("Usage: tidemark table [OPTIONS] [FILE...]\n"));
  EXPECT_THAT(table, HasSubstr("[default: 20]"));
  EXPECT_THAT(table, HasSubstr("[default: peak]"));
  EXPECT_THAT(table, HasSubstr("[default: text]"));
  EXPECT_THAT(help("timeline"), HasSubstr("(8 to 1,000,000) [default: 2000]"));
  EXPECT_THAT(help("compare"), HasSubstr("Usage: tidemark compare [OPTIONS] A B\n"));
  EXPECT_THAT(help("doctor"), HasSubstr("Usage: tidemark doctor [OPTIONS] [[--] PROGRAM [ARGS]...]\n"));
  const CommandModel show = {
      .name = "show",
      .options = {{.names = {"--to"}, .value = "x", .group = "Options", .description = "Format", .required = true}}};
  EXPECT_THAT(help_text(show, 200), HasSubstr("[required]"));
}

TEST(Help, OfACommandIsThatOfItsOption) {
  EXPECT_EQ(printed({"help", "table"}), printed({"table", "--help"}));
  EXPECT_EQ(printed({"help"}), printed({"--help"}));
  EXPECT_THAT(printed({"help", "table"}).second, HasSubstr("Usage: tidemark table"));
  EXPECT_EQ(printed({"help", "table"}).first, kOk);
  const auto [code, message] = run({"help", "tabel"});
  EXPECT_EQ(code, kError);
  EXPECT_EQ(message, "tidemark: unknown command 'tabel'; did you mean `tidemark table`?\n");
}

TEST(Help, AsMarkdownHasTheUsageTablesOfOptionsAndTheExamples) {
  const CommandModel show = {
      .name = "show",
      .description = "Show a file",
      .usage = "tidemark show [OPTIONS] FILE...",
      .arguments = {{.argument = "FILE", .description = ".tide files", .repeated = true}},
      .options = {{.names = {"-h", "--help"}, .group = "Options", .description = "Print this help"},
                  {.names = {"-o", "--output"},
                   .value = "FILE",
                   .group = "Options",
                   .description = "Where to, such as 'a*' or `b*`",
                   .initial = "stdout"},
                  {.names = {"--to"}, .value = "x|y", .group = "Options", .description = "Format", .required = true},
                  {.names = {"--by"},
                   .value = "first-of-all|second-of-all|third-of-all",
                   .group = "Choice",
                   .description = "Groups"}},
      .footer = "A paragraph.\n\nExamples:\n  tidemark show\n  tidemark show -o x\n\nThe end."};
  EXPECT_EQ(help_markdown(show),
            "```text\ntidemark show [OPTIONS] FILE...\n```\n\n"
            "| option | meaning | default |\n|---|---|---|\n"
            "| `FILE...` | .tide files | |\n"
            "| `-o`, `--output FILE` | Where to, such as 'a\\*' or `b*` | stdout |\n"
            "| `--to x\\|y` | Format | required |\n"
            "\nChoice:\n\n| option | meaning | default |\n|---|---|---|\n"
            "| `--by NAME` | Groups. One of `first-of-all`, `second-of-all`, `third-of-all` |  |\n"
            "\nExamples:\n\n```text\ntidemark show\ntidemark show -o x\n```\n");
  const CommandModel program = {.name = "tidemark",
                                .commands = {{.name = "run", .group = "Record", .description = "Record"},
                                             {.name = "plan", .group = "Record", .description = "A|B"},
                                             show}};
  EXPECT_EQ(help_markdown(program),
            "| | command | what it does |\n|---|---|---|\n"
            "| Record | [`run`](commands/run.md) | Record |\n"
            "|  | [`plan`](commands/plan.md) | A\\|B |\n"
            "|  | [`show`](commands/show.md) | Show a file |\n");
}

TEST(Manual, IsMadeFromTheModel) {
  CommandModel program = {.name = "tidemark", .options = {{.names = {"--version"}, .description = "Print it"}}};
  program.commands.push_back(
      {.name = "show",
       .description = "Show a file",
       .usage = "tidemark show [OPTIONS] FILE...",
       .arguments = {{.argument = "FILE", .description = ".tide files", .repeated = true}},
       .options = {{.names = {"-h", "--help"}, .description = "Print this help"},
                   {.names = {"-o", "--output"}, .value = "FILE", .description = "What a\\b is", .initial = "x-y"}},
       .footer = "Two\nlines.\n\nExamples:\n  tidemark show\n  .x\n\nThe end."});
  EXPECT_EQ(manual_page(program, "Usage\n@SYNOPSIS@\nOptions\n@OPTIONS@\nCommands\n@COMMANDS@\nEnd\n"),
            "Usage\n"
            "\\fBtidemark show\\fR [OPTIONS] FILE...\n"
            "Options\n"
            ".TP\n\\fB\\-\\-version\\fR\nPrint it\n"
            "Commands\n"
            ".SS \"tidemark show\"\nShow a file.\n"
            ".TP\n\\fIFILE\\fR\n\\&.tide files\n"
            ".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\nWhat a\\eb is [default: x\\-y]\n"
            ".PP\nTwo\nlines.\n.PP\nExamples:\n.nf\n  tidemark show\n  .x\n.fi\n.PP\nThe end.\n"
            "End\n");
}

}  // namespace
}  // namespace tidemark::cli
