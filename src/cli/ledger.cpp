#include "analyze/ledger/ledger.h"

#include <memory>

#include "cli/picture.h"
#include "report/chart/chart.h"

namespace tidemark::cli {
namespace {

constexpr const char* kFormats = "text|json|png|svg";

Result<std::string> render(const std::vector<Ledger>& ledgers, const std::string& format) {
  if (format == "png") return draw_ledger(ledgers, ChartFormat::png);
  if (format == "svg") return draw_ledger(ledgers, ChartFormat::svg);
  if (format == "json") return to_json(ledgers);
  return join_texts(ledgers, false);
}

int run(const PictureOptions& options) {
  const auto format = output_format(options, kFormats);
  if (!format) return fail(format.error().message);
  LedgerOptions what;
  what.device = options.only_device();
  if (*format == "text") what.points = 0;
  const auto ledgers = analyze_files<Ledger>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    const auto at = options.moment(store);
    if (!at) return Result<Ledger>(at.error());
    what.at = *at;
    return analyze_ledger(store, symbols, what);
  });
  if (!ledgers) return fail(ledgers.error().message);
  const auto bytes = render(*ledgers, *format);
  if (!bytes) return fail(bytes.error().message);
  return write_output(options.output, *bytes);
}

}  // namespace

std::function<int()> setup_ledger(CLI::App& app) {
  auto options = std::make_shared<PictureOptions>();
  add_files(app, *options);
  add_picture_format(app, *options, kFormats);
  add_moment(app, *options);
  app.footer(
      "Here the peak is that of the whole device: the sample at which most of it was used.\n"
      "\n"
      "Examples:\n"
      "  tidemark ledger run.tide\n"
      "  tidemark ledger run.tide --at end --device cuda:1\n"
      "  tidemark ledger run.tide -o ledger.png\n"
      "  tidemark ledger run.tide --format json | jq '.devices[0].ledger.unexplained_bytes'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
