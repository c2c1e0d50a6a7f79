// A command's options. CLI11 parses them, behind this header: sources that include CLI11 itself take five seconds
// longer to compile and run its static constructors, so only command_line.cpp and application.cpp do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tidemark::cli {

/// The words of a command line as CLI11 has to get them: it takes "[1,2]" for two words, wherever an option can have
/// several, and a program's arguments have to reach it as they are. Options added by CommandLine restore them.
[[nodiscard]] std::vector<std::string> protected_words(int argc, const char* const* argv);

/// The one of `words` that is most similar to the mistyped `word`; empty if none is similar.
[[nodiscard]] std::string closest_word(const std::string& word, const std::vector<std::string>& words);

/// "text, json or csv".
[[nodiscard]] std::string either_of(const std::vector<std::string>& words);

/// One option, flag or positional argument. The setters return the option itself, to be chained.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option* required();
  /// For an option with several values: each occurrence takes one.
  Option* one_at_a_time();
  /// For an option with several values: it takes all words up to the next option.
  Option* all_that_follow();
  /// Placeholder for the value in help: "FILE", or the allowed words ("text|json"), which shell completion offers.
  Option* type_name(const std::string& name);
  /// `problem(value)` returns the problem of a value, or "".
  Option* check(std::function<std::string(const std::string&)> problem);
  /// The value is one of these words, given as "text|json".
  Option* one_of(const std::string& words);
  /// A time as parse_time() takes it, without a unit in ms, from `least` to `most` ms; the variable gets ms.
  Option* milliseconds(double least, double most);
  /// A time as parse_time() takes it, without a unit in seconds; the variable gets seconds, of any size.
  Option* seconds();
  /// The same, from a second to 100 years; the variable, a string, gets the text.
  Option* time_span();
  /// A size as parse_size() takes it, of `least` bytes or more; the variable gets bytes, and 0 is no default.
  Option* bytes(std::uint64_t least);
  /// Default in help if it is not the variable's value, or if there is no variable.
  Option* show_default(const std::string& text);

 private:
  CLI::Option* option_;
};

/// The command line of one command, to be filled by its setup(). Variables must live as long as it does.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(&app) {}
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// `names`: "-o,--output", or a name without dashes for a positional argument. Help shows the variable's value as the
  /// default. The pointer lives as long as this.
  Option* add_option(const std::string& names, std::string& variable, const std::string& description);
  /// An option that can be repeated, with one value each; a positional argument takes all values.
  Option* add_option(const std::string& names, std::vector<std::string>& variable, const std::string& description);
  Option* add_option(const std::string& names, std::uint64_t& variable, const std::string& description);
  Option* add_option(const std::string& names, double& variable, const std::string& description);
  /// `take` gets the value when the option was given.
  Option* add_option(const std::string& names, const std::function<void(const std::string&)>& take,
                     const std::string& description);
  Option* add_flag(const std::string& names, const std::function<void()>& take, const std::string& description);
  Option* add_flag(const std::string& names, bool& variable, const std::string& description);

  /// Options that are added from now on stand under this heading in help.
  void group(const std::string& heading);
  /// The first option of a group that was given, if one was; valid after parsing.
  [[nodiscard]] std::optional<std::string> first_given(const std::string& group) const;

  /// All words from the first positional argument on are the program to run, with its own options.
  void ends_with_a_program();
  /// Words after "--" are a program with its own options, and not the last of several positional values. The variable
  /// must live as long as this.
  void takes_a_program_after_dashes(std::vector<std::string>& program) { program_ = &program; }
  /// Before parsing: moves these words of the whole program's command line into the variable.
  void take_program(std::vector<std::string>& words) const;
  /// Shown below the options in help.
  void footer(const std::string& text);
  /// Whether the option was given; valid after parsing.
  [[nodiscard]] bool given(const std::string& name) const;
  /// The options that were given, as words of a command line, without these. Valid after parsing.
  [[nodiscard]] std::vector<std::string> words_given(const std::vector<std::string>& without) const;
  /// The whole program's command line, which contains this one.
  [[nodiscard]] const CLI::App& program() const;

 private:
  template <typename T>
  Option* add(const std::string& names, T& variable, const std::string& description);

  CLI::App* app_;
  std::deque<Option> options_;
  std::vector<std::string>* program_ = nullptr;
};

}  // namespace tidemark::cli
