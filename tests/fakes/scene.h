// Runs the test program under `tidemark run`, and returns the events of the fakes and the recorded ones.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "event_log.h"

namespace tidemark::testing {

/// An event as a line, without its time: "allocate cuda:0 0x7f0000000000 512 totals 512 2097152".
struct Line {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::string text;

  bool operator==(const Line&) const = default;
};

/// An entry of a log of the fakes.
struct Said {
  fakes::Kind kind;
  std::int64_t pid;
  std::int64_t tid;
  std::uint64_t address;
  std::int64_t size;
  std::uint64_t allocated;
  std::uint64_t reserved;
  int device_type;
  int device_index;

  bool operator==(const Said&) const = default;
};

/// The output of `tidemark dump` for one recording.
struct Dumped {
  std::string path;
  std::int64_t pid = -1;
  std::vector<Line> events;
  std::map<std::string, std::uint64_t> missing;  ///< count by kind
  std::size_t threads = 0;
  bool in_time_order = true;
  bool process_exited = false;
};

struct Scene {
  int status = -1;  ///< as from waitpid(): of `tidemark run`, so of the program
  std::string output;
  std::string messages;  ///< on stderr
  std::vector<Said> said;
  std::vector<Said> heard;
  std::vector<Dumped> recordings;  ///< by name: the first process's first
  std::string folder;              ///< where they are; removed by the caller
};

/// "cuda:1", as reports name devices.
std::string device_name(int type, int index);

/// The expected lines of a recording for the fakes' events from entry `first` on. Earlier blocks are freed without a
/// size.
std::vector<Line> expected_lines(const std::vector<Said>& said, std::size_t first = 0);

/// The lines of each thread in their order.
std::map<std::int64_t, std::vector<std::string>> by_thread(const std::vector<Line>& lines);

/// `options` go to `tidemark run`, `torch` is the folder of the fakes to load.
Scene run_scene(const std::string& folder, const std::string& options, const std::string& name,
                const std::string& torch);

/// Standard output of `tidemark ARGUMENTS` as JSON.
nlohmann::json tidemark_json(const std::string& arguments);

}  // namespace tidemark::testing
