// The end of the pickle: segments, annotations and settings.
#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "import/pytorch_snapshot/model/builder.h"

namespace tidemark::pytorch {
namespace {

bool is_boolean(Word word, bool& value) {
  if (word.tag() != Tag::boolean) return false;
  value = word.id() != 0;
  return true;
}

bool is_empty(Word word) {
  return word.tag() == Tag::empty_list || word.tag() == Tag::none;
}

}  // namespace

bool SnapshotBuilder::get_device(Word word, std::int32_t& device) const {
  std::int64_t number = 0;
  if (!numbers.get(word, number) || number < -1 || number > std::numeric_limits<std::int32_t>::max()) return false;
  device = static_cast<std::int32_t>(number);
  return true;
}

bool SnapshotBuilder::finish_segments(Word list) {
  Container* all = use_once(list, false);
  if (all == nullptr) return false;
  const std::vector<Word> segments = std::move(all->words);
  bool understood = all->count == 0;
  for (const Word word : segments) {
    Container* segment = use_once(word, true);
    if (segment == nullptr || !finish_segment(*segment)) understood = false;
    if (!failure_.empty()) return false;
  }
  return understood;
}

bool SnapshotBuilder::finish_segment(Container& dict) {
  SnapshotSegment segment;
  Word blocks;
  bool is_segment = false;
  const std::vector<Word> items = std::move(dict.words);
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const Word value = items[n + 1];
    bool understood = true;
    switch (known(items[n])) {
      case Known::device:
        understood = get_device(value, segment.device);
        break;
      case Known::address:
        understood = numbers.get_address(value, segment.address);
        break;
      case Known::total_size:
        is_segment = true;
        understood = numbers.get(value, segment.total_size);
        break;
      case Known::allocated_size:
        understood = numbers.get(value, segment.allocated_size);
        break;
      case Known::active_size:
        understood = numbers.get(value, segment.active_size);
        break;
      case Known::requested_size:
        understood = numbers.get(value, segment.requested_size);
        break;
      case Known::stream:
        if (!use_stream(segment.stream, value, understood)) return false;
        break;
      case Known::segment_pool_id:
        if (!use_pool(segment.pool, value, understood)) return false;
        break;
      case Known::segment_type:
        segment.large = known(value) == Known::large;
        understood = segment.large || known(value) == Known::small;
        break;
      case Known::is_expandable:
        understood = is_boolean(value, segment.expandable);
        break;
      case Known::frames:
        understood = use_frames(segment.stack, value);
        break;
      case Known::blocks:
        is_segment = true;
        blocks = value;
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::segment, items[n]);
  }
  if (!is_segment) return false;
  if (blocks.tag() != Tag::unset && !is_empty(blocks) && !finish_blocks(segment, blocks)) {
    unknown_.key(Scope::segment, Word(Tag::text, static_cast<std::uint32_t>(Known::blocks)));
  }
  snapshot_.segments.push_back(std::move(segment));
  return failure_.empty();
}

bool SnapshotBuilder::finish_blocks(SnapshotSegment& segment, Word list) {
  Container* all = use_once(list, false);
  if (all == nullptr) return false;
  bool understood = all->count == 0 || all->run_of == Tag::block;
  if (!understood) return false;
  const auto from = blocks_.begin() + all->first;
  if (all->count > 0) segment.blocks.assign(from, from + all->count);
  for (const Word word : all->words) {
    if (word.tag() == Tag::block) {
      segment.blocks.push_back(blocks_[word.id()]);
    } else {
      understood = false;
    }
  }
  std::uint64_t next = segment.address;
  for (SnapshotBlock& block : segment.blocks) {
    if (block.address == kAbsent) block.address = next;
    if (block.requested_size == kAbsent) block.requested_size = block.size;  // as PyTorch's own viewer has it
    next = block.address + block.size;
  }
  std::stable_sort(segment.blocks.begin(), segment.blocks.end(),
                   [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
  all->words.clear();
  return understood;
}

bool SnapshotBuilder::finish_annotations(Word list) {
  Container* all = use_once(list, false);
  if (all == nullptr) return false;
  const std::vector<Word> annotations = std::move(all->words);
  bool understood = all->count == 0;
  for (const Word word : annotations) {
    const Container* dict = use_once(word, true);
    if (!failure_.empty()) return false;
    if (dict == nullptr) {
      understood = false;
    } else {
      finish_annotation(*dict);
    }
  }
  return understood;
}

void SnapshotBuilder::finish_annotation(const Container& dict) {
  Annotation annotation;
  for (std::size_t n = 0; n < dict.words.size(); n += 2) {
    const Word value = dict.words[n + 1];
    bool understood = true;
    switch (known(dict.words[n])) {
      case Known::stage:
        annotation.start = known(value) == Known::start;
        understood = annotation.start || known(value) == Known::end;
        break;
      case Known::name:
        understood = value.tag() == Tag::text;
        if (understood) annotation.name = stacks_.string(value.id());
        break;
      case Known::device:
        understood = get_device(value, annotation.device);
        break;
      case Known::time_us:
        understood = numbers.get(value, annotation.time_us);
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::annotation, dict.words[n]);
  }
  snapshot_.annotations.push_back(annotation);
}

bool SnapshotBuilder::finish_settings(Word dict) {
  const Container* all = use_once(dict, true);
  if (all == nullptr) return false;
  AllocatorSettings& settings = snapshot_.settings;
  snapshot_.has_settings = true;
  for (std::size_t n = 0; n < all->words.size(); n += 2) {
    const Word value = all->words[n + 1];
    std::int64_t size = 0;
    double threshold = 0;
    bool flag = false;
    switch (known(all->words[n])) {
      case Known::cuda_alloc_conf:
      case Known::alloc_conf:
        if (value.tag() == Tag::text && value.id() != 0) settings.text = texts[value.id()];
        break;
      case Known::max_split_size:
        if (numbers.get(value, size)) settings.max_split_size = size;
        break;
      case Known::garbage_collection_threshold:
        if (numbers.get(value, threshold)) settings.garbage_collection_threshold = threshold;
        break;
      case Known::expandable_segments:
        if (is_boolean(value, flag)) settings.expandable_segments = flag;
        break;
      case Known::roundup_power2_divisions:
        finish_divisions(value);
        break;
      default:
        break;  // what changes nothing here, of pinned memory and others
    }
  }
  return true;
}

void SnapshotBuilder::finish_divisions(Word dict) {
  const Container* all = use_once(dict, true);
  if (all == nullptr) return;
  for (std::size_t n = 0; n < all->words.size(); n += 2) {
    std::uint64_t mebibytes = 0;
    std::uint64_t divisions = 0;
    const Word key = all->words[n];
    bool understood = numbers.get(all->words[n + 1], divisions);
    if (key.tag() == Tag::text) {
      const std::string_view text = texts[key.id()];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mebibytes);
      understood = understood && error == std::errc() && end == text.data() + text.size();
    } else {
      understood = understood && numbers.get(key, mebibytes);
    }
    if (understood) snapshot_.settings.roundup_power2_divisions[mebibytes] = divisions;
  }
}

}  // namespace tidemark::pytorch
