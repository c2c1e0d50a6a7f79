#include "monitor/object_question.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/scoped_fd.h"
#include "collect/ring/layout.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxStorages = 256;
constexpr std::size_t kMaxTexts = 8;  // chains of a storage, or notes
constexpr std::size_t kMaxText = 2000;

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
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct ::stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid()) {
    return std::nullopt;
  }
  std::string text(kMaxAnswerBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ::ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
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
  const std::string problem = said.is_object() ? text_of(said, "problem") : "";
  return Error{problem.empty() ? "the program's answer is not understood" : "the program says: " + problem};
}

}  // namespace tidemark
