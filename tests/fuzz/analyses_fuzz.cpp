// Fuzz target of everything made from a recording: all analyses in all their formats, the page, and all exports. For
// any bytes, each ends with a result or an error, and JSON output is valid.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "export/format.h"
#include "fuzz/repair_checksums.h"
#include "fuzz/require.h"
#include "query/analyses/analysis.h"
#include "query/recording.h"
#include "report/formats.h"
#include "report/html/page_contents.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

/// A file of this process, in a memory file system if there is one. Removed at the end.
class File {
 public:
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void write(std::span<const std::byte> bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = (::access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm") : std::string("/tmp")) +
                      "/tidemark-analyses-fuzz-" + std::to_string(::getpid()) + ".tide";
};

void analyze(const std::shared_ptr<const AttributedStore>& store, Symbols& symbols) {
  for (const Analysis& analysis : analyses()) {
    AnalysisOptions options(analysis.options);
    options.attribution = store->attribution;
    const std::unique_ptr<AnalysisRun> run = analysis.start();
    const auto added = analysis.needs_blocks ? run->add(*store, symbols, options)
                                             : run->add(sampled_overview(store), symbols, options);
    if (!added) continue;
    for (const std::string& format : formats_of(analysis)) {
      if (format == "png") continue;  // takes long, of the same plot as svg
      const auto text = write_results(analysis, *run, format, {});
      require(text.ok() && !text->empty(), analysis.name + " as " + format);
      if (format == "json") require(nlohmann::json::accept(*text), analysis.name + " is JSON");
    }
  }
}

void export_all(const AttributedStore& store, Symbols& symbols) {
  for (const ExportFormat& format : export_formats()) {
    ExportOptions options;
    options.attribution = store.attribution.get();
    (void)format.write(store, symbols, options, [](std::string_view) { return Result<void>(); }, {});
  }
}

void read(const File& file, std::span<const std::byte> bytes) {
  file.write(bytes);
  auto opened = open_attributed(file.path());
  require(opened.ok() || opened.error().message.starts_with(file.path()), "an error names the file");
  if (!opened) return;
  const auto store = std::make_shared<const AttributedStore>(std::move(*opened));
  Symbols symbols(store->definitions);
  analyze(store, symbols);
  export_all(*store, symbols);
  html::PageOptions options;
  auto contents = html::collect_page_contents(*store, symbols, options, store->attribution.get());
  if (!contents) return;
  std::vector<html::PageContents> pages;
  pages.push_back(std::move(*contents));
  (void)to_html(std::move(pages));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File kFile;
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  for (const std::uint8_t byte : std::span(data, size)) bytes.push_back(std::byte{byte});
  tidemark::testing::repair_checksums(bytes);
  read(kFile, bytes);
  return 0;
}
