#include "report/common/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "query/words/data_quality.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

Tone tone_of(Severity severity) {
  if (severity == Severity::error) return Tone::error;
  return severity == Severity::warning ? Tone::warning : Tone::quiet;
}

}  // namespace

std::string fact(const char* label, const std::string& value) {
  return fmt::format("  {:<15} {}\n", label, value);
}

std::string fact(const char* label, const std::string& value, const Terminal& terminal) {
  return fact(
      label, [&](std::size_t width) { return fit(value, width); }, terminal);
}

std::string fact(const char* label, const FittedText& value, const Terminal& terminal) {
  constexpr std::size_t kBefore = 18;  // of the label and the space around it
  constexpr std::size_t kNarrowest = 24;
  if (terminal.width == 0) return fact(label, value(0));
  return fact(label, value(std::max(kNarrowest, terminal.width - std::min(terminal.width, kBefore))));
}

std::string quality_text(const DataQuality& quality, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::heading, fmt::format("Data quality: {}", quality_verdict(quality))) + "\n";
  for (const QualityIssue& issue : quality.issues) {
    const Severity severity = facts_of(issue.id).severity;
    const std::string label = fmt::format("{:<8}", name_of(severity));
    text += fmt::format("  {} {}\n", paint(terminal, tone_of(severity), label), printable(quality_text(issue)));
  }
  return text;
}

std::string quality_hint(const RecordingInfo& recording, const Terminal& terminal) {
  if (recording.quality.complete) return {};
  const auto& issues = recording.quality.issues;
  const bool goes_on = std::none_of(issues.begin(), issues.end(), [](const QualityIssue& issue) {
    return facts_of(issue.id).incomplete && issue.id != QualityId::in_progress;
  });
  if (goes_on) return "The recording is in progress: events that come later are not included.\n";
  return paint(terminal, Tone::warning, "Events are missing: see the data quality in `tidemark summary`.") + "\n";
}

std::string join_devices(const std::vector<std::string>& texts) {
  const auto is_line = [](const std::string& text) { return text.find('\n') + 1 == text.size(); };
  std::string joined;
  for (std::size_t index = 0; index < texts.size(); ++index) {
    if (index != 0 && !(is_line(texts[index - 1]) && is_line(texts[index]))) joined += "\n";
    joined += texts[index];
  }
  return joined;
}

}  // namespace tidemark
