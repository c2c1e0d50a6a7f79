#include "collect/process/script/objects_script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "collect/process/connection.h"
#include "collect/process/filtered.h"
#include "collect/process/python/python_walker.h"
#include "collect/process/script/script.h"
#include "collect/ring/layout.h"

namespace tidemark::process {

extern const char kObjectsScript[];
/// Names and texts of modules, alternating, up to a null pointer, in load order: made by the build from
/// python/tidemark/_holders.
extern const char* const kHolderModules[];

namespace {

constinit std::atomic<bool> wanted{false};     // an answer is requested
constinit std::atomic<bool> queued{false};     // run_queued() is in the interpreter's queue
constinit std::atomic<bool> answering{false};  // a thread is answering

// The request's file. False if there is none.
bool find_question(char (&path)[PATH_MAX]) noexcept {
  if (filtered()) return false;
  const char* socket = recorder_socket();
  const char* end = ::strrchr(socket, '/');
  if (end == nullptr) return false;
  const int length = ::snprintf(path, sizeof(path), "%.*s/%s%ld%s", static_cast<int>(end - socket), socket,
                                ring::kQuestionStem, static_cast<long>(::getpid()), ring::kQuestionEnd);
  return length > 0 && static_cast<std::size_t>(length) < sizeof(path) && ::access(path, F_OK) == 0;
}

// ---- functions for the script, called with the GIL ----

// question() -> the path of the request's file, in bytes; empty if there is none
void* question(void* /*self*/, void* /*none*/) {
  char path[PATH_MAX];
  const std::size_t length = find_question(path) ? ::strlen(path) : 0;
  return python_api()->PyBytes_FromStringAndSize(path, static_cast<std::ptrdiff_t>(length));
}

// modules() -> [name, text, name, text, …] in bytes, in load order
void* modules(void* /*self*/, void* /*none*/) {
  const PythonApi& api = *python_api();
  void* list = api.PyList_New(0);
  if (list == nullptr) return nullptr;
  for (const char* const* text = kHolderModules; *text != nullptr; ++text) {
    void* bytes = api.PyBytes_FromStringAndSize(*text, static_cast<std::ptrdiff_t>(::strlen(*text)));
    const bool appended = bytes != nullptr && api.PyList_Append(list, bytes) == 0;
    if (bytes != nullptr) api.Py_DecRef(bytes);
    if (appended) continue;
    api.Py_DecRef(list);
    return nullptr;
  }
  return list;
}

PythonMethod object_methods[] = {
    {"question", question, kNoArguments, nullptr},
    {"modules", modules, kNoArguments, nullptr},
};

constinit Script objects_script{"<tidemark>/objects_script.py", kObjectsScript, object_methods};

// ---- running it ----

// If no script may run: writes the answer of python/tidemark/_holders/_answer.py that gives the reason.
void refuse(const char* question) noexcept {
  char part[PATH_MAX];
  char answer[PATH_MAX];
  const int stem = static_cast<int>(::strlen(question) - (sizeof(ring::kQuestionEnd) - 1));
  const int length = ::snprintf(answer, sizeof(answer), "%.*s%s", stem, question, ring::kAnswerEnd);
  if (length <= 0 || static_cast<std::size_t>(length) >= sizeof(answer) || ::unlink(question) != 0) return;
  (void)::snprintf(part, sizeof(part), "%.*s.part", stem, question);  // shorter
  static constexpr char kSaid[] =
      R"({"problem": "it has audit hooks (sys.addaudithook), which might end it for what Tidemark asks", "seconds": 0})";
  const int file = ::open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  const bool whole = ::write(file, kSaid, sizeof(kSaid) - 1) == static_cast<ssize_t>(sizeof(kSaid) - 1);
  ::close(file);
  if (whole) ::rename(part, answer);  // readers only ever see the whole file
}

int run_queued(void* /*argument*/) {
  queued.store(false);
  answer_now();
  return 0;
}

}  // namespace

void answer_now() noexcept {
  char path[PATH_MAX];
  if (!wanted.load(std::memory_order_relaxed) || !wanted.exchange(false)) return;
  if (!find_question(path) || answering.exchange(true)) return;
  if (objects_script.run() == Script::Outcome::audited) refuse(path);
  answering.store(false);
}

// If the request is still there later, the recorder signals it again.
bool take_question(ring::Lane* lane, std::uint32_t epoch) noexcept {
  const std::uint32_t before = lane->connection.fetch_and(~ring::kQuestionWaits, std::memory_order_relaxed);
  if (before != (epoch | ring::kQuestionWaits)) return false;
  const int saved = errno;
  wanted.store(true);
  const bool known = python_detect() != PythonSupport::unsupported;  // looks for the interpreter
  if (known && !queued.exchange(true) && !schedule_script(run_queued)) queued.store(false);
  errno = saved;
  return true;
}

void forget_questions() noexcept {
  wanted.store(false);
  queued.store(false);
  answering.store(false);
}

}  // namespace tidemark::process
