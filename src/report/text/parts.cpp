#include "report/text/parts.h"

#include <fmt/format.h>

#include "report/words/data_quality.h"
#include "report/words/printable.h"

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
  return paint(terminal, Tone::warning, "Events are missing: see the data quality in `tidemark summary`.") + "\n";
}

std::string nothing_alive_text() {
  return "  (no live blocks)\n";
}

}  // namespace tidemark
