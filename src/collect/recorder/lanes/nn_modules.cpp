#include "collect/recorder/lanes/nn_modules.h"

#include <algorithm>

namespace tidemark {
namespace {

// A death that is missing for so long was lost: the ring was full.
constexpr std::size_t kMaxBeyond = 65'536;

template <typename Item>
void keep_latest(std::vector<Item>& items, std::uint64_t from_generation) {
  std::erase_if(items, [&](const Item& item) { return item.generation < from_generation; });
  if (items.size() <= NnModules::kMaxLives) return;
  items.erase(items.begin(), items.end() - static_cast<std::ptrdiff_t>(NnModules::kMaxLives));
}

}  // namespace

std::size_t NnModules::life(const Address& at, std::uint64_t generation) {
  return static_cast<std::size_t>(std::upper_bound(at.deaths.begin(), at.deaths.end(), generation) - at.deaths.begin());
}

NnModuleId NnModules::id(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer) {
  const NnModuleId id = object(address, generation, writer);
  forget_lives(addresses_[address]);
  return id;
}

NnModuleId NnModules::object(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer) {
  Address& at = addresses_[address];
  if (generation < at.remembered_from) {
    if (!at.forgotten) at.forgotten = writer.nn_module({address});
    return *at.forgotten;
  }
  for (const Object& object : at.objects) {
    const bool certain = generation <= known_ && object.generation <= known_;
    if (object.generation == generation || (certain && life(at, object.generation) == life(at, generation)))
      return object.id;
  }
  const NnModuleId id = writer.nn_module({address});
  at.objects.push_back({generation, id});
  write_names(at, writer);
  return id;
}

void NnModules::name(std::uint64_t address, const Name& name, RecordingWriter& writer) {
  Address& at = addresses_[address];
  std::erase_if(at.names, [&](const Name& other) {
    const bool certain = name.generation <= known_ && other.generation <= known_;
    const bool same_object =
        name.generation == other.generation || (certain && life(at, name.generation) == life(at, other.generation));
    return same_object && other.ticks <= name.ticks;
  });
  at.names.push_back(name);
  object(address, name.generation, writer);
  write_names(at, writer);
  forget_lives(at);
  forget_lives(addresses_[name.root]);
}

void NnModules::died(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer) {
  if (generation > known_) beyond_.insert(generation);
  if (beyond_.size() > kMaxBeyond) known_ = *beyond_.begin() - 1;
  while (beyond_.erase(known_ + 1) > 0) ++known_;
  Address& at = addresses_[address];
  at.deaths.insert(std::upper_bound(at.deaths.begin(), at.deaths.end(), generation), generation);
  write_names(at, writer);
  forget_lives(at);
  dead_.emplace_back(address, generation);
  forget_dead();
}

void NnModules::forget_lives(Address& at) {
  if (at.deaths.size() > kMaxLives) {
    const auto kept = at.deaths.end() - static_cast<std::ptrdiff_t>(kMaxLives);
    at.remembered_from = *std::prev(kept);
    at.deaths.erase(at.deaths.begin(), kept);
  }
  keep_latest(at.objects, at.remembered_from);
  keep_latest(at.names, at.remembered_from);
}

// Forgets addresses that have not been used since.
void NnModules::forget_dead() {
  if (dead_.size() <= kMaxDead) return;
  const std::uint64_t address = dead_.front().first;
  const std::uint64_t generation = dead_.front().second;
  dead_.pop_front();
  const auto found = addresses_.find(address);
  if (found == addresses_.end()) return;
  const auto before = [&](const auto& item) { return item.generation < generation; };
  const Address& at = found->second;
  if ((at.deaths.empty() || at.deaths.back() <= generation) &&
      std::all_of(at.objects.begin(), at.objects.end(), before) &&
      std::all_of(at.names.begin(), at.names.end(), before)) {
    addresses_.erase(found);
  }
}

void NnModules::keep(KeptDefinitions& definitions) const {
  for (const auto& [address, at] : addresses_) {
    for (const Object& object : at.objects) definitions.keep(object.id);
    if (at.forgotten) definitions.keep(*at.forgotten);
    for (const Name& name : at.names) {
      definitions.keep(name.path);
      definitions.keep(name.type);
    }
  }
}

// Writes the latest name of each object's life if it differs from the last one written. object() may add objects.
void NnModules::write_names(Address& at, RecordingWriter& writer) {
  for (std::size_t index = 0; index < at.objects.size(); ++index) {
    const Name* latest = nullptr;
    for (const Name& name : at.names) {
      if (life(at, name.generation) != life(at, at.objects[index].generation)) continue;
      if (latest == nullptr || latest->ticks <= name.ticks) latest = &name;
    }
    if (latest == nullptr && !at.objects[index].written) continue;
    NnModuleName wanted{at.objects[index].id, {}, {}, {}};  // no name: the name belonged to another object
    if (latest != nullptr) {
      wanted.path = latest->path;
      wanted.type = latest->type;
      wanted.root = object(latest->root, latest->generation, writer);
    }
    std::optional<NnModuleName>& written = at.objects[index].written;
    if (written && written->root.value == wanted.root.value && written->path.value == wanted.path.value &&
        written->type.value == wanted.type.value) {
      continue;
    }
    written = wanted;
    writer.nn_module_name(wanted);
  }
}

}  // namespace tidemark
