#include <algorithm>
#include <utility>

#include "query/results/common.h"
#include "query/results/results.h"
#include "query/words/printable.h"
#include "report/html/sections.h"

namespace tidemark::html {
namespace {

constexpr std::size_t kMaxTextColumns = 2000;  // of one text: longer text is not a name

void shorten_texts(Json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (text.size() > kMaxTextColumns) text = shown(text, kMaxTextColumns);
  } else if (value.is_structured()) {
    for (Json& part : value) shorten_texts(part);
  }
}

// The command's JSON, without the parts on the recording that all results repeat.
template <typename Result>
Json part(const Result& result, const Json& recording) {
  Json object = to_object(result);
  for (const auto& [key, value] : recording.items()) object.erase(key);
  return object;
}

Json map_json(const PageMap& map, const Device& device) {
  Json segments = Json::array();
  for (const MapSegment& segment : map.segments) segments.push_back(to_object(segment));
  return {{"device", to_string(device)},
          {"segments", std::move(segments)},
          {"other_segment_count", map.other_segments},
          {"other_bytes", map.other_bytes}};
}

Json contents_json(const PageContents& contents) {
  Json object = to_object(contents.recording);
  const Json recording = object;
  object["summary"] = part(contents.summary, recording);
  if (contents.breakdown) object["breakdown"] = part(*contents.breakdown, recording);
  object["timeline"] = part(contents.timeline, recording);
  object["ledger"] = part(contents.ledger, recording);
  object["table"] = part(contents.table, recording);
  object["tree"] = part(contents.tree, recording);
  object["fragmentation"] = part(contents.fragmentation, recording);
  object["temporary"] = part(contents.temporary, recording);
  object["patterns"] = part(contents.patterns, recording);
  object["leaks"] = part(contents.leaks, recording);
  object["explain"] = part(contents.explanation, recording);
  for (const PageTable& page : contents.tables) object[page.analysis->name] = part(page.table, recording);
  object["segment_maps"] = Json::array();
  for (std::size_t index = 0; index < contents.maps.size(); ++index) {
    if (contents.maps[index].segments.empty()) continue;
    object["segment_maps"].push_back(
        map_json(contents.maps[index], contents.fragmentation.devices[index].totals.device));
  }
  shorten_texts(object);
  return object;
}

}  // namespace

std::string data_block(const std::vector<PageContents>& pages, const RankComparison* ranks) {
  Json document = {{"schema", "tidemark-report"}, {"version", 1}};
  document["ranks"] = ranks == nullptr ? Json(nullptr) : to_object(*ranks);
  document["recordings"] = Json::array();
  for (const PageContents& contents : pages) {
    if (contents.is_detailed()) document["recordings"].push_back(contents_json(contents));
  }
  const std::string json = document.dump(-1, ' ', true, Json::error_handler_t::replace);
  // Angle brackets occur only in strings; escaped, nothing in a script element ends it or opens a comment.
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (const char letter : json) {
    if (letter == '<') {
      safe += "\\u003c";
    } else if (letter == '>') {
      safe += "\\u003e";
    } else if (letter == '&') {
      safe += "\\u0026";
    } else {
      safe += letter;
    }
  }
  return safe;
}

}  // namespace tidemark::html
