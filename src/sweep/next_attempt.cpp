#include "sweep/next_attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "sweep/arguments.h"

namespace tidemark {
namespace {

constexpr std::string_view kBatch = "batch";
constexpr std::string_view kAccumulation = "accumulation";
constexpr std::string_view kCheckpointing = "checkpointing";

// Of "--option VALUE" or "--option=VALUE", the last one. Empty: a flag, or the command ends with the option.
std::optional<std::string> value_of(const std::vector<std::string>& command, const std::string& option) {
  for (std::size_t index = command.size(); index-- > 0;) {
    if (command[index].starts_with(option + "=")) return command[index].substr(option.size() + 1);
    if (command[index] == option) return index + 1 < command.size() ? command[index + 1] : std::string();
  }
  return std::nullopt;
}

const VariedArgument* find(const std::vector<VariedArgument>& arguments, std::string_view name) {
  const auto found = std::ranges::find(arguments, name, &VariedArgument::name);
  return found == arguments.end() ? nullptr : &*found;
}

// PyTorch 2.9 renamed the variable and still reads the older name.
const char* allocator_variable(const std::string& torch_version) {
  int major = 0;
  int minor = 0;
  const bool known = std::sscanf(torch_version.c_str(), "%d.%d", &major, &minor) == 2;  // NOLINT(cert-err34-c)
  return known && std::pair(major, minor) >= std::pair(2, 9) ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}

class Applying {
 public:
  Applying(const std::vector<VariedArgument>& arguments, const std::vector<std::string>& command,
           RestartVerdict& verdict)
      : arguments_(arguments), command_(command), verdict_(verdict) {}

  void apply() {
    for (std::size_t index = 0; index < verdict_.changes.size(); ++index) {
      const RestartChange& change = verdict_.changes[index];
      if (change.enough == false) continue;
      NextAttempt next;
      next.change = index;
      next.command = command_;
      if (!applies(change, next)) continue;
      verdict_.next_attempt = std::move(next);
      return;
    }
    verdict_.not_applied = !why_not_.empty()          ? why_not_
                           : verdict_.changes.empty() ? "no change is known"
                                                      : "no change is one of the named arguments";
  }

 private:
  bool applies(const RestartChange& change, NextAttempt& next) {
    switch (change.kind) {
      case RestartChangeKind::allocator_settings:
        return set_allocator(change, next);
      case RestartChangeKind::batch:
        return set_batch(change.divisor, next);
      case RestartChangeKind::planned:
        return set_checkpointing(change, next);
      default:
        return false;
    }
  }

  bool set_allocator(const RestartChange& change, NextAttempt& next) const {
    if (!change.fix) return false;
    const RecordingInfo& recording = verdict_.ranks[*verdict_.first].recording;
    std::string settings = change.fix->settings;
    if (settings.empty()) {
      settings = recording.allocator_settings.value_or("");
      settings += settings.empty() ? "expandable_segments:True" : ",expandable_segments:True";
    }
    next.environment.emplace_back(allocator_variable(recording.process.torch_version), std::move(settings));
    return true;
  }

  bool set_batch(std::uint64_t divisor, NextAttempt& next) {
    const VariedArgument* batch = find(arguments_, kBatch);
    if (batch == nullptr || divisor < 2) return false;
    const auto was = value_of(command_, batch->option);
    const auto size = was ? parse_number<std::uint64_t>(*was) : std::nullopt;
    if (!size) {
      why_not_ = fmt::format("the command has no number after {}", batch->option);
      return false;
    }
    if (*size < divisor) {
      why_not_ = fmt::format("{} {} is too small to be divided by {}", batch->option, *size, divisor);
      return false;
    }
    set(*batch, was, std::to_string(*size / divisor), next);
    if (const VariedArgument* accumulation = find(arguments_, kAccumulation)) {
      const auto before = value_of(command_, accumulation->option);
      const auto steps = before ? parse_number<std::uint64_t>(*before) : std::nullopt;
      set(*accumulation, before, std::to_string(steps.value_or(1) * divisor), next);
    }
    return true;
  }

  // A change that was planned with this option.
  bool set_checkpointing(const RestartChange& change, NextAttempt& next) const {
    const VariedArgument* checkpointing = find(arguments_, kCheckpointing);
    if (checkpointing == nullptr || !change.planned.starts_with(checkpointing->option)) return false;
    std::string value = change.planned.substr(checkpointing->option.size());
    if (!value.empty() && value.front() != ' ') return false;  // another option, with a longer name
    if (!value.empty()) value.erase(0, 1);
    next.command.push_back(checkpointing->option);
    if (!value.empty()) next.command.push_back(value);
    next.arguments.push_back({checkpointing->name, checkpointing->option, std::nullopt, std::move(value)});
    return true;
  }

  static void set(const VariedArgument& argument, std::optional<std::string> was, std::string value,
                  NextAttempt& next) {
    auto program = VariedProgram::create(std::move(next.command), {argument});
    if (!program) return;
    next.command = program->with(std::vector{value});
    next.arguments.push_back({argument.name, argument.option, std::move(was), std::move(value)});
  }

  const std::vector<VariedArgument>& arguments_;
  const std::vector<std::string>& command_;
  RestartVerdict& verdict_;
  std::string why_not_;
};

}  // namespace

Result<std::vector<VariedArgument>> parse_applied(const std::vector<std::string>& texts) {
  std::vector<VariedArgument> arguments;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    VariedArgument argument;
    argument.name = text.substr(0, equals);
    argument.option = equals == std::string::npos ? "" : text.substr(equals + 1);
    const std::array names = {kBatch, kAccumulation, kCheckpointing};
    if (std::ranges::find(names, argument.name) == names.end() || !argument.option.starts_with('-')) {
      return Error{
          fmt::format("--apply {}: expected batch=OPTION, accumulation=OPTION or checkpointing=OPTION, such as "
                      "batch=--batch-size",
                      text)};
    }
    if (find(arguments, argument.name) != nullptr) {
      return Error{fmt::format("--apply {}: {} is named twice", text, argument.name)};
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

void apply_changes(const std::vector<VariedArgument>& arguments, const std::vector<std::string>& command,
                   RestartVerdict& verdict) {
  if (!verdict.first) {
    verdict.not_applied = "no recorded process ran out of memory";
    return;
  }
  Applying(arguments, command, verdict).apply();
}

}  // namespace tidemark
