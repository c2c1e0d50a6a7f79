#include "scene.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace tidemark::testing {
namespace {

using Json = nlohmann::json;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

std::string totals(std::uint64_t allocated, std::uint64_t reserved) {
  return " totals " + std::to_string(allocated) + " " + std::to_string(reserved);
}

std::vector<Said> read_log(const std::string& path) {
  std::vector<Said> all;
  std::ifstream file(path, std::ios::binary);
  const auto content = std::make_unique<fakes::Content>();
  if (!file.read(reinterpret_cast<char*>(content.get()), sizeof(fakes::Content))) return all;
  for (std::size_t index = 0; index < content->count.load(); ++index) {
    const fakes::Entry& entry = content->entries[index];
    all.push_back({entry.kind.load(), entry.pid, entry.tid, entry.address, entry.size, entry.allocated, entry.reserved,
                   entry.device_type, entry.device_index});
  }
  return all;
}

Line line_of(const Json& event, std::int64_t pid, const std::vector<std::int64_t>& tids) {
  Line line{pid, event["thread"].is_null() ? -1 : tids.at(event["thread"]), event["kind"]};
  if (event.contains("device")) line.text += " " + event["device"].get<std::string>();
  if (event.contains("address")) line.text += " " + event["address"].get<std::string>();
  if (event.contains("size")) line.text += " " + (event["size"].is_null() ? "-" : event["size"].dump());
  if (event.contains("total_allocated")) line.text += totals(event["total_allocated"], event["total_reserved"]);
  return line;
}

Dumped dump(const std::string& path) {
  Dumped dumped;
  dumped.path = path;
  std::vector<std::int64_t> tids;
  std::uint64_t last = 0;
  std::istringstream lines(text_of(path + ".jsonl"));
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text);
    if (line.contains("process")) dumped.pid = line["process"]["pid"];
    if (line.contains("thread")) tids.push_back(line["thread"]["tid"]);
    if (line.contains("missing")) {
      const Json& missing = line["missing"];
      dumped.missing[missing["kind"]] += missing["count"].get<std::uint64_t>();
    }
    if (line.contains("end")) dumped.process_exited = line["end"]["process_exited"];
    if (!line.contains("event")) continue;
    const std::uint64_t time = line["event"]["time_ns"];
    dumped.in_time_order = dumped.in_time_order && time >= last;
    last = time;
    dumped.events.push_back(line_of(line["event"], dumped.pid, tids));
  }
  dumped.threads = tids.size();
  return dumped;
}

}  // namespace

std::string device_name(int type, int index) {
  const std::string number = ":" + std::to_string(index);
  if (type == 0) return "cpu";
  if (type == 1) return "cuda" + number;
  if (type == 12) return "xpu" + number;
  return "device-type-" + std::to_string(type) + number;
}

std::vector<Line> expected_lines(const std::vector<Said>& said, std::size_t first) {
  std::vector<Line> lines;
  std::map<std::tuple<std::int64_t, std::string, std::uint64_t>, std::int64_t> sizes;  // of the live blocks
  for (std::size_t index = first; index < said.size(); ++index) {
    const Said& entry = said[index];
    const std::string device = " " + device_name(entry.device_type, entry.device_index);
    const std::string address = " " + hexadecimal(entry.address);
    const auto block = std::tuple(entry.pid, device, entry.address);
    std::string text;
    switch (entry.kind) {
      case fakes::Kind::allocate:
      case fakes::Kind::cpu_new:
        if (entry.size == 0) continue;
        // A reloaded allocator reuses addresses that its predecessor never freed: that block is gone.
        if (sizes.contains(block)) {
          lines.push_back({entry.pid, entry.tid, "free" + device + address + " " + std::to_string(sizes[block])});
        }
        sizes[block] = entry.size;
        text = "allocate" + device + address + " " + std::to_string(entry.size);
        break;
      case fakes::Kind::free:
      case fakes::Kind::cpu_delete:
        if (entry.address == 0) continue;
        text = "free" + device + address + " " + (sizes.contains(block) ? std::to_string(sizes[block]) : "-");
        sizes.erase(block);
        break;
      case fakes::Kind::fail:
      case fakes::Kind::cpu_fail:
        text = "out_of_memory" + device + " " + std::to_string(entry.size);
        break;
      default:
        continue;
    }
    if (entry.device_type != 0) text += totals(entry.allocated, entry.reserved);
    lines.push_back({entry.pid, entry.tid, text});
  }
  return lines;
}

std::map<std::int64_t, std::vector<std::string>> by_thread(const std::vector<Line>& lines) {
  std::map<std::int64_t, std::vector<std::string>> threads;
  for (const Line& line : lines) threads[line.tid].push_back(line.text);
  return threads;
}

Json tidemark_json(const std::string& arguments) {
  const std::string command = TIDEMARK_PROGRAM " " + arguments;
  std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), output.get())) > 0;) text.append(part, got);
  return Json::parse(text);
}

Scene run_scene(const std::string& folder, const std::string& options, const std::string& name,
                const std::string& torch) {
  Scene scene;
  scene.folder = folder;
  const auto at = [&folder](const std::string& file) { return folder + "/" + file; };
  ::setenv("FAKES_SAID", at("said").c_str(), 1);
  ::setenv("FAKES_HEARD", at("heard").c_str(), 1);
  const std::string command = "exec timeout -k 5 60 " TIDEMARK_PROGRAM " run -q " + options + " -o " + at("run.tide") +
                              " -- " FAKES_PROGRAM " " + name + " " + torch + "/libc10_cuda.so " + torch +
                              "/libextension.so >" + at("out") + " 2>" + at("err");
  scene.status = std::system(command.c_str());
  scene.output = text_of(at("out"));
  scene.messages = text_of(at("err"));
  scene.said = read_log(at("said"));
  scene.heard = read_log(at("heard"));
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".tide") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end(), [&](const auto& a, const auto& b) {
    return std::pair(a != at("run.tide"), a) < std::pair(b != at("run.tide"), b);
  });
  for (const std::string& path : paths) {
    const std::string dump_command = TIDEMARK_PROGRAM " dump --format json " + path + " >" + path + ".jsonl";
    EXPECT_EQ(std::system(dump_command.c_str()), 0);
    scene.recordings.push_back(dump(path));
  }
  return scene;
}

}  // namespace tidemark::testing
