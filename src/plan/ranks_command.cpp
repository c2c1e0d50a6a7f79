#include "plan/ranks_command.h"

#include <fmt/format.h>

#include <filesystem>

namespace tidemark {
namespace {

bool is_interpreter(const std::string& program) {
  return std::filesystem::path(program).filename().string().starts_with("python");
}

}  // namespace

Result<std::vector<std::string>> ranks_command(const std::vector<std::string>& command, const std::string& python,
                                               std::uint64_t count) {
  const bool interpreter = is_interpreter(command.front());
  std::vector<std::string> ranks = {interpreter ? command.front() : python};
  std::size_t word = 1;
  // Options of the interpreter up to its program; -W and -X take the next word where nothing is attached.
  for (; interpreter && word < command.size(); ++word) {
    const std::string& option = command[word];
    if (option.size() < 2 || option[0] != '-' || option == "-m") break;
    if (option == "-c") return Error{"--nproc: a program in the command line (-c) has no ranks; write it to a file"};
    ranks.push_back(option);
    if ((option == "-W" || option == "-X") && word + 1 < command.size()) ranks.push_back(command[++word]);
  }
  if (interpreter && (word == command.size() || command[word] == "-")) {
    return Error{fmt::format("--nproc: {} is given no program to run", command.front())};
  }
  ranks.insert(ranks.end(),
               {"-m", "torch.distributed.run", "--standalone", "--nproc-per-node", fmt::format("{}", count)});
  if (!interpreter) {
    ranks.emplace_back("--no-python");
    word = 0;
  }
  ranks.insert(ranks.end(), command.begin() + static_cast<std::ptrdiff_t>(word), command.end());
  return ranks;
}

}  // namespace tidemark
