// Runs and records a program, for `run` and `plan`; and reports a dump of its recording.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collect/recorder/recorder.h"
#include "collect/recorder/session/dump.h"
#include "launch/child_process.h"

namespace tidemark::cli {

struct ProgramOptions {
  RecorderOptions recorder;
  bool driver = false;                                  ///< record calls of the CUDA driver
  std::vector<std::string> command;                     ///< the program and its arguments
  std::vector<std::string> preload;                     ///< libraries that it loads behind the collector
  std::vector<std::string> environment;                 ///< variables ("NAME=value") that are set for it
  std::function<void()> prepare = {};                   ///< called in the child before it is the program; see execute()
  bool only_recorded = false;                           ///< the program does not run if it could not be recorded
  std::function<void(const ChildProcess&)> watch = {};  ///< called many times a second while the program runs
  std::function<void(const ChildProcess&)> ended = {};  ///< called when it has ended, before its recordings are
};

/// Runs the program to its end and records it; this process is its recorder. `at_end` receives the recorder once its
/// files are complete; it is not called if nothing could be recorded. Returns `exit_code` of the ended program, or the
/// code for a program that could not be started.
int record_program(const ProgramOptions& options, const std::function<void(const Recorder&)>& at_end,
                   const std::function<int(const ChildProcess&)>& exit_code);

/// Prints "tidemark: MESSAGE" to stderr; paths and commands in it are untrusted.
void say_printable(const std::string& message);

/// At most ten lines: the verdict of `explain`, or the killed process, and the files. Reads the dump's recordings.
/// Thread-safe, for files that are not written any more.
[[nodiscard]] std::vector<std::string> verdict_of(const Dump& dump);

}  // namespace tidemark::cli
