#include "collect/machine/process_memory.h"

#include <fmt/format.h>

#include "collect/machine/files.h"

namespace tidemark {
namespace {

std::optional<std::uint64_t> kib_after(const std::string& text, const char* key) {
  const auto kib = number_after(text, key);
  return kib ? std::optional(*kib << 10) : std::nullopt;
}

}  // namespace

ProcessPages resident_pages(std::int64_t pid, const std::string& root) {
  const std::string text = read_file(fmt::format("{}/proc/{}/status", root, pid)).value_or("");
  ProcessPages pages;
  pages.rss_bytes = kib_after(text, "VmRSS:");
  if (pages.rss_bytes.value_or(0) == 0) return {};  // one that has ended and is not waited for yet has no pages
  pages.anon_bytes = kib_after(text, "RssAnon:");
  pages.file_bytes = kib_after(text, "RssFile:");
  pages.shmem_bytes = kib_after(text, "RssShmem:");
  pages.swap_bytes = kib_after(text, "VmSwap:");
  pages.locked_bytes = kib_after(text, "VmLck:");
  pages.pinned_bytes = kib_after(text, "VmPin:");
  return pages;
}

WalkedPages walked_pages(std::int64_t pid, const std::string& root) {
  const std::string text = read_file(fmt::format("{}/proc/{}/smaps_rollup", root, pid)).value_or("");
  return {kib_after(text, "Pss:"), kib_after(text, "Private_Dirty:")};
}

}  // namespace tidemark
