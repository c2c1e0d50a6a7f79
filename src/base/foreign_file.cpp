#include "base/foreign_file.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tidemark {
namespace {

constexpr std::string_view kReadable =
    "tidemark reads recordings (`tidemark run -o run.tide -- python train.py`) and PyTorch memory snapshots "
    "(`torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`)";

struct Kind {
  std::string_view begin;
  std::string_view what;
};

// torch.save() of PyTorch before 1.6 writes a number of 10 bytes first; safetensors the length of JSON, then JSON.
constexpr std::array<Kind, 7> kKinds = {{
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", "a file of torch.save() in its older format"},
    {"SQLite format 3", "a SQLite database, as --history writes it (`tidemark history` reads that)"},
    {"\x7f"
     "ELF",
     "a program or library (ELF)"},
    {"\x89PNG", "a PNG picture"},
    {"<!DOCTYPE html", "an HTML page, as `tidemark report` writes it"},
    {"#!", "a script"},
    {"(dp", "a pickle of protocol 0, which is not read: write it with protocol 2 to 5"},
}};

constexpr std::array<std::string_view, 5> kPython = {"\"\"\"", "import ", "from ", "def ", "class "};

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte >= 0x20 || (byte >= '\t' && byte <= '\r');
  });
}

bool is_json(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[') && is_text(bytes);
}

std::string kind_of(std::string_view bytes) {
  constexpr std::string_view kZip = "PK\x03\x04";
  constexpr std::size_t kLengthOfSafetensors = 8;
  if (bytes.starts_with(kZip)) return "a zip file, as torch.save() writes";
  if (is_json(bytes)) return "JSON, as reports and traces of profilers are";
  if (bytes.size() > kLengthOfSafetensors && bytes.substr(kLengthOfSafetensors).starts_with("{\"")) {
    return "a safetensors file (`tidemark model` reads it)";
  }
  const auto* const kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& entry) { return bytes.starts_with(entry.begin); });
  if (kind != kKinds.end()) return std::string(kind->what);
  if (bytes.empty() || !is_text(bytes)) return "";
  const bool is_python =
      std::any_of(kPython.begin(), kPython.end(), [&](std::string_view begin) { return bytes.starts_with(begin); });
  return is_python ? "Python source code (to record it: `tidemark run -- python FILE`)" : "a text file";
}

}  // namespace

std::string describe_foreign_file(std::span<const std::byte> first_bytes) {
  std::string kind = kind_of({reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size()});
  if (kind.empty()) return kind;
  const bool saved = kind.find("torch.save()") != std::string::npos;
  kind.append("; ").append(saved ? how_to_write_a_snapshot() : std::string(kReadable));
  return kind;
}

std::string how_to_write_a_snapshot() {
  return "if it holds torch.cuda.memory._snapshot(), write that with pickle.dump() instead, or call "
         "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\"); what a model takes: "
         "tidemark.analyze_model(torch.load(FILE, weights_only=True))";
}

}  // namespace tidemark
