#include "monitor/object_question.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/regular_file.h"
#include "base/scoped_fd.h"
#include "collect/ring/layout.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxStorages = 256;
constexpr std::size_t kMaxTexts = 8;  // chains of a storage, or notes
constexpr std::size_t kMaxText = 2000;
constexpr double kLongestWait = 86'400;  // seconds; a program may send any number

std::uint64_t wall_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>().substr(0, kMaxText) : "";
}

std::uint64_t count_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (texts.size() == kMaxTexts) break;
    if (text.is_string()) texts.push_back(text.get<std::string>().substr(0, kMaxText));
  }
  return texts;
}

HeldStorage storage_of(const Json& entry) {
  const auto native = entry.find("native");
  return {count_of(entry, "address"),
          count_of(entry, "bytes"),
          text_of(entry, "device"),
          text_of(entry, "kind"),
          text_of(entry, "type"),
          texts_of(entry, "chains"),
          native != entry.end() && native->is_boolean() && native->get<bool>()};
}

std::optional<std::string> read_small(const std::string& path) {
  const auto fd = open_regular_file(path, Symlinks::refused);
  struct ::stat facts {};
  if (!fd || ::fstat(fd->get(), &facts) != 0 || facts.st_uid != ::geteuid()) return std::nullopt;
  std::string text(kMaxAnswerBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ::ssize_t got = ::read(fd->get(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

std::optional<ObjectAnswer> parse_object_answer(std::string_view json) {
  if (json.size() > kMaxAnswerBytes) return std::nullopt;
  const Json object = Json::parse(json, nullptr, false);
  const auto storages = object.is_object() ? object.find("storages") : object.end();
  if (!object.is_object() || storages == object.end() || !storages->is_array()) return std::nullopt;
  ObjectAnswer answer;
  answer.new_storages = count_of(object, "new_storages");
  answer.new_bytes = count_of(object, "new_bytes");
  if (const auto seconds = object.find("seconds"); seconds != object.end() && seconds->is_number()) {
    answer.seconds = seconds->get<double>();
  }
  if (const auto limit = object.find("stopped_after_seconds"); limit != object.end() && limit->is_number()) {
    answer.stopped_after_seconds = limit->get<double>();
  }
  answer.notes = texts_of(object, "notes");
  for (const Json& entry : *storages) {
    if (answer.storages.size() == kMaxStorages) break;
    if (entry.is_object()) answer.storages.push_back(storage_of(entry));
  }
  return answer;
}

ObjectQuestion::ObjectQuestion(const std::string& folder, pid_t pid)
    : stem_(fmt::format("{}/{}{}", folder, ring::kQuestionStem, pid)) {}

ObjectQuestion::~ObjectQuestion() {
  if (!asked_) return;
  ::unlink((stem_ + ring::kQuestionEnd).c_str());
  ::unlink((stem_ + ring::kAnswerEnd).c_str());
}

void ObjectQuestion::ask(bool first) {
  answer_.reset();
  asked_ = true;
  ::unlink((stem_ + ring::kAnswerEnd).c_str());
  const std::string part = stem_ + ".ask";
  const std::string_view text = first ? "first\n" : "again\n";
  const ScopedFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool written = fd && ::write(fd.get(), text.data(), text.size()) == static_cast<::ssize_t>(text.size());
  if (!written || ::rename(part.c_str(), (stem_ + ring::kQuestionEnd).c_str()) != 0) ::unlink(part.c_str());
}

bool ObjectQuestion::is_answered() {
  if (asked_ && !answer_) answer_ = read_small(stem_ + ring::kAnswerEnd);
  return answer_.has_value();
}

Result<ObjectAnswer> ObjectQuestion::answer() const {
  if (!answer_) return Error{kNoAnswer};
  if (auto answer = parse_object_answer(*answer_)) return std::move(*answer);
  const Json said = Json::parse(*answer_, nullptr, false);
  if (said.is_object() && said.contains("first")) return Error{"the program had no PyTorch when it was asked before"};
  const std::string problem = said.is_object() ? text_of(said, "problem") : "";
  return Error{problem.empty() ? "the program's answer is not understood" : "the program says: " + problem};
}

ObjectQuestions::ObjectQuestions(const std::string& folder, pid_t pid) : question_(folder, pid) {
  question_.ask(true);
}

bool ObjectQuestions::update(Clock::time_point now) {
  if (waits_ && question_.is_answered()) {
    waits_ = false;
    double held_up_seconds = 0;
    if (std::exchange(has_begun_, true)) {
      auto answer = question_.answer();
      problem_ = answer ? "" : answer.error().message;
      if (answer) {
        held_up_seconds = std::max(answer->seconds, 0.0);
        latest_ = std::move(*answer);
        latest_->answered_wall_ns = wall_ns();
      }
    }
    const auto least = std::chrono::duration<double>(std::min(held_up_seconds * kPauseForEachSecond, kLongestWait));
    next_ = now + std::max<Clock::duration>(pause_, std::chrono::duration_cast<Clock::duration>(least));
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  return !waits_ && now >= *next_;
}

void ObjectQuestions::ask() {
  if (std::exchange(waits_, true)) return;
  question_.ask(false);
}

Result<ObjectAnswer> ObjectQuestions::latest(bool runs) const {
  const char* const unanswered = runs ? kNoAnswer : waits_ ? kEndedBeforeAnswer : kEndedBeforeAskedAgain;
  const bool is_of_end = runs && !waits_;
  if (!latest_) return Error{problem_.empty() ? unanswered : problem_};
  ObjectAnswer answer = *latest_;
  if (!problem_.empty()) {
    answer.older_because = problem_;
  } else if (!is_of_end) {
    answer.older_because = unanswered;
  }
  return answer;
}

}  // namespace tidemark
