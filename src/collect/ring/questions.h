// What a monitor asks of a recorded process: files in the recorder's folder, which is the user's alone.
//
//   objects.PID.question  "first" or "again": which storages the process has, or which are new since and who holds
//   them.
//                         The process takes it away when it begins to answer.
//   objects.PID.answer    JSON; monitor/object_question.h reads it
//
// While there is a question, the recorder says so in the lanes of the process's threads, which so need not look for
// files.
#pragma once

namespace tidemark::ring {

inline constexpr char kQuestionStem[] = "objects.";  ///< then the process's id
inline constexpr char kQuestionEnd[] = ".question";
inline constexpr char kAnswerEnd[] = ".answer";

}  // namespace tidemark::ring
