#include "cli/completion.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "analyze/common/moment.h"
#include "cli/command.h"
#include "cli/reading.h"
#include "import/open.h"
#include "query/words/printable.h"
#include "trace/reader.h"

namespace tidemark::cli {

namespace {

std::string quote(std::string_view text, std::string_view quoted_quote) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += quoted_quote;
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}
std::string shell_quote(std::string_view text) {
  return quote(text, "'\\''");
}
std::string fish_quote(std::string_view text) {
  return quote(text, "\\'");
}

// The helpers of the scripts take names from the recordings on the command line. Names are untrusted: they are never
// expanded, and inserted text is quoted.
constexpr const char* kBashHelper = R"(
_tidemark_in_files() {
  local file name quoted files=()
  for file in "${COMP_WORDS[@]:2}"; do
    file=${file/#\~\//$HOME/}
    file=${file//\\/}
    file=${file#[\"\']}
    file=${file%[\"\']}
    [[ -f $file ]] && files+=("$file")
  done
  COMPREPLY=($(compgen -W "$2" -- "$word"))
  while IFS= read -r name; do
    printf -v quoted %q "$name"
    [[ $quoted == "$word"* || $name == "$word"* ]] && COMPREPLY+=("$quoted")
  done < <(((${#files[@]})) && "$program" completion "$1" -- "${files[@]}" 2>/dev/null)
  # Bash has split the word at colons and replaces its last part only.
  [[ $word == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
}
)";
constexpr const char* kZshHelper = R"(
_tidemark_in_files() {
  local -a files values
  local word expl
  for word in "${(@)words[2,-1]}"; do
    word=${${(Q)word}/#\~\//$HOME/}
    [[ -f $word ]] && files+=("$word")
  done
  (( $#files )) && values=("${(@f)$(command tidemark completion $1 -- "${(@)files}" 2>/dev/null)}")
  values=("${(@)values:#}" "${@:2}")
  _wanted values expl value compadd -a values
}
)";
constexpr const char* kFishHelper = R"(
function __tidemark_in_files
  set -l files
  for word in (commandline -op)
    test -f "$word"; and set -a files $word
  end
  set -q files[1]; and command tidemark completion $argv[1] -- $files 2>/dev/null
end
)";

// The kind of values that the helpers read from files for an option: "devices", "marks", or "" for none.
std::string in_files(const OptionModel& option) {
  if (option.value == "DEVICE") return "devices";
  return option.value.ends_with("|MARK") ? "marks" : "";
}

std::string choices_of(const OptionModel& option) {
  return fmt::format("{}", fmt::join(option.choices(), " "));
}

std::string all_names(const CommandModel& command) {
  std::string names;
  for (const OptionModel& option : command.options) {
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

// Inside an _arguments specification, colons and brackets separate parts.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (std::string_view(":[]\\").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

// A large file must not block the shell: only values found within half a second are printed. Each value is written at
// once, so that none is lost then.
int print_values_in_files(const std::vector<std::string>& files, FileValues which) {
  std::signal(SIGPROF, [](int) { _exit(kOk); });
  const itimerval half_a_second = {{0, 0}, {0, 500'000}};
  ::setitimer(ITIMER_PROF, &half_a_second, nullptr);
  int result = kOk;
  find_values_in_files(files, which, [&](const std::string& value) { result = print(value + "\n"); });
  return result;
}

constexpr std::size_t kMaxValues = 200;
constexpr std::size_t kLongestValue = 200;  // bytes

class ValuesInFiles {
 public:
  ValuesInFiles(FileValues which, const std::function<void(const std::string&)>& take) : which_(which), take_(take) {}

  void read(const std::string& path) {
    if (!check_recording_path(path)) return;  // a pipe would never end
    marks_ = 0;
    if (auto recording = TraceReader::open(path)) {
      read_recording(**recording);
    } else if (const auto overview = open_overview(path)) {
      for (const DeviceSummary& device : overview->devices) add_device(device.device);
      add_marks(overview->definitions);
    }
  }

 private:
  // Frame by frame, so that the first names of a large recording come at once.
  void read_recording(TraceReader& recording) {
    std::vector<Event> events;
    std::vector<Device> devices;
    bool more = true;
    while (more) {
      const Result<bool> next = recording.next(events);
      more = next.ok() && *next;
      if (which_ == FileValues::marks) add_marks(recording.definitions());
      for (std::size_t event = 0; more && event < events.size(); ++event) {
        if (std::find(devices.begin(), devices.end(), events[event].device) != devices.end()) continue;
        devices.push_back(events[event].device);
        add_device(devices.back());
      }
    }
  }
  void add_device(Device device) {
    if (which_ == FileValues::devices) add(to_string(device));
  }
  void add_marks(const Definitions& definitions) {
    for (; which_ == FileValues::marks && marks_ < definitions.marks.size(); ++marks_) {
      const Mark& mark = definitions.marks[marks_];
      const bool named = mark.name.valid() && mark.name.value < definitions.strings.size();
      if (mark.kind == Mark::Kind::range_end || !named) continue;
      const std::string& name = definitions.strings[mark.name.value];
      if (!name.empty() && name.size() <= kLongestValue) add(moment_of_mark(name));
    }
  }
  void add(const std::string& value) {
    if (seen_.size() == kMaxValues || printable(value) != value || !seen_.insert(value).second) return;
    take_(value);
  }

  FileValues which_;
  const std::function<void(const std::string&)>& take_;
  std::unordered_set<std::string> seen_;
  std::size_t marks_ = 0;  // of the file being read, that were looked at
};

}  // namespace

std::string bash_completion(const CommandModel& program) {
  std::string words;
  std::string cases;
  for (const CommandModel& command : program.commands) {
    words += (words.empty() ? "" : " ") + command.name;
    std::string values;
    std::string positional;
    for (const OptionModel& option : command.options) {
      const std::string list = choices_of(option);
      if (const std::string what = in_files(option); !what.empty()) {
        values += fmt::format("        {}) _tidemark_in_files {} '{}'; return ;;\n", fmt::join(option.names, "|"), what,
                              list);
      } else if (!list.empty()) {
        values += fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                              fmt::join(option.names, "|"), list);
      }
    }
    for (const OptionModel& argument : command.arguments) positional += choices_of(argument);
    cases += fmt::format("    {})\n", command.name);
    if (!values.empty()) cases += fmt::format("      case $before in\n{}      esac\n", values);
    cases += fmt::format("      options='{}'\n", all_names(command));
    if (!positional.empty()) cases += fmt::format("      positional='{}'\n", positional);
    cases += "      ;;\n";
  }
  return fmt::format(R"(# bash completion for tidemark; made by `tidemark completion bash`
{}
_tidemark() {{
  local program=$1 at=$COMP_CWORD options='' positional=''
  local word=${{COMP_WORDS[at]}}
  # "cuda:0" is three words to bash.
  while ((at > 1)) && [[ ${{COMP_WORDS[at]}} == : || ${{COMP_WORDS[at-1]}} == : ]]; do word=${{COMP_WORDS[--at]}}$word; done
  local before=${{COMP_WORDS[at-1]}}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $positional ]]; then
    COMPREPLY=($(compgen -W "$positional" -- "$word"))
  fi
}}
complete -o default -o bashdefault -F _tidemark tidemark
)",
                     std::string_view(kBashHelper).substr(1), words, cases);
}

std::string zsh_completion(const CommandModel& program) {
  std::string names;
  std::string cases;
  for (const CommandModel& command : program.commands) {
    names += fmt::format("    {}\n", shell_quote(fmt::format("{}:{}", command.name, zsh_text(command.description))));
    cases += fmt::format("    {})\n      _arguments", command.name);
    std::string rest = "*:file:_files";
    for (const OptionModel& option : command.options) {
      std::string values = choices_of(option).empty() ? ":_files" : fmt::format(":({})", choices_of(option));
      if (const std::string what = in_files(option); !what.empty()) {
        values = fmt::format(": _tidemark_in_files {} {}", what, choices_of(option));
      }
      for (const std::string& name : option.names) {
        const std::string spec =
            fmt::format("{}[{}]{}", name, zsh_text(option.description), option.value.empty() ? "" : ":value" + values);
        cases += fmt::format(" \\\n        {}", shell_quote(spec));
      }
    }
    for (const OptionModel& argument : command.arguments) {
      if (!choices_of(argument).empty()) rest = fmt::format("1:value:({})", choices_of(argument));
    }
    cases += fmt::format(" \\\n        {}\n      ;;\n", shell_quote(rest));
  }
  return fmt::format(R"(#compdef tidemark
# zsh completion for tidemark; made by `tidemark completion zsh`
{}
_tidemark() {{
  local -a commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    _arguments '--help[Print help]' '--version[Print the version]'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_tidemark "$@"
)",
                     std::string_view(kZshHelper).substr(1), names, cases);
}

std::string fish_completion(const CommandModel& program) {
  std::string text = "# fish completion for tidemark; made by `tidemark completion fish`";
  text += kFishHelper;
  for (const CommandModel& command : program.commands) {
    text += fmt::format("complete -c tidemark -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        fish_quote(command.description));
    for (const OptionModel& option : command.options) {
      std::string line = fmt::format("complete -c tidemark -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (const std::string what = in_files(option); !what.empty()) {
        line += fmt::format(" -x -a '(__tidemark_in_files {}) {}'", what, choices_of(option));
      } else if (!choices_of(option).empty()) {
        line += fmt::format(" -x -a '{}'", choices_of(option));
      } else if (!option.value.empty()) {
        line += " -r";
      }
      text += fmt::format("{} -d {}\n", line, fish_quote(option.description));
    }
    for (const OptionModel& argument : command.arguments) {
      if (choices_of(argument).empty()) continue;  // files, which fish offers anyway
      text += fmt::format("complete -c tidemark -n '__fish_seen_subcommand_from {}' -f -a '{}' -d {}\n", command.name,
                          choices_of(argument), fish_quote(argument.description));
    }
  }
  return text;
}

std::function<int()> setup_completion(CommandLine& app) {
  struct Options {
    std::string what;
    std::vector<std::string> files;
  };
  auto options = std::make_shared<Options>();
  app.add_option("WHAT", options->what, "bash, zsh or fish: its script; devices or marks: names in files, one per line")
      ->required()
      ->one_of("bash|zsh|fish|devices|marks");
  app.add_option("FILE", options->files, "Recordings or PyTorch memory snapshots, for devices and marks")
      ->type_name("FILE");
  app.footer(
      "The scripts complete --device and --at with the names in the recordings on the command line.\n\n"
      "Examples:\n"
      "  tidemark completion bash > ~/.local/share/bash-completion/completions/tidemark\n"
      "  tidemark completion fish > ~/.config/fish/completions/tidemark.fish");
  return [options, &app] {
    const CommandModel program = command_model(app.program());
    if (options->what == "bash") return print(bash_completion(program));
    if (options->what == "zsh") return print(zsh_completion(program));
    if (options->what == "fish") return print(fish_completion(program));
    return print_values_in_files(options->files, options->what == "devices" ? FileValues::devices : FileValues::marks);
  };
}

void find_values_in_files(const std::vector<std::string>& files, FileValues which,
                          const std::function<void(const std::string&)>& take) {
  ValuesInFiles values(which, take);
  for (const std::string& path : files) values.read(path);
}

}  // namespace tidemark::cli
