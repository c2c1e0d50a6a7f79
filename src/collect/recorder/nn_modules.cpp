#include "collect/recorder/nn_modules.h"

#include <algorithm>

namespace tidemark {

std::size_t NnModules::life(const Address& at, std::uint64_t generation) {
  return static_cast<std::size_t>(std::upper_bound(at.deaths.begin(), at.deaths.end(), generation) - at.deaths.begin());
}

NnModuleId NnModules::id(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer) {
  Address& at = addresses_[address];
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
  id(address, name.generation, writer);
  write_names(at, writer);
}

void NnModules::died(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer) {
  beyond_.insert(generation);
  while (beyond_.erase(known_ + 1) > 0) ++known_;
  Address& at = addresses_[address];
  at.deaths.insert(std::upper_bound(at.deaths.begin(), at.deaths.end(), generation), generation);
  write_names(at, writer);
}

void NnModules::keep(KeptDefinitions& definitions) const {
  for (const auto& [address, at] : addresses_) {
    for (const Object& object : at.objects) definitions.keep(object.id);
    for (const Name& name : at.names) {
      definitions.keep(name.path);
      definitions.keep(name.type);
    }
  }
}

// Of each object the latest name of its life, where that is not what was written last. id() may add objects meanwhile.
void NnModules::write_names(Address& at, RecordingWriter& writer) {
  for (std::size_t index = 0; index < at.objects.size(); ++index) {
    const Name* latest = nullptr;
    for (const Name& name : at.names) {
      if (life(at, name.generation) != life(at, at.objects[index].generation)) continue;
      if (latest == nullptr || latest->ticks <= name.ticks) latest = &name;
    }
    if (latest == nullptr && !at.objects[index].written) continue;
    NnModuleName wanted{at.objects[index].id, {}, {}, {}};  // of nothing: the name was another object's
    if (latest != nullptr) {
      wanted.path = latest->path;
      wanted.type = latest->type;
      wanted.root = id(latest->root, latest->generation, writer);
    }
    Object& object = at.objects[index];
    if (object.written && object.written->root.value == wanted.root.value &&
        object.written->path.value == wanted.path.value && object.written->type.value == wanted.type.value) {
      continue;
    }
    object.written = wanted;
    writer.nn_module_name(wanted);
  }
}

}  // namespace tidemark
