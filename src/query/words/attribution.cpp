#include "query/words/attribution.h"

#include <algorithm>

#include "query/words/printable.h"

namespace tidemark {

std::string category_text(Category category) {
  if (category == Category::per_sample_gradient) return "per-sample gradient";
  std::string words(name_in(kCategoryNames, category));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string owner_text(const BlockOwner& owner) {
  if (!owner.name) return owner.kind == OwnerKind::step ? "(before step 0)" : "(no module)";
  if (owner.kind == OwnerKind::step) return "step " + *owner.name;
  const auto category = value_in(kCategoryNames, *owner.name);
  return owner.kind == OwnerKind::category && category ? category_text(*category) : shown(*owner.name);
}

const char* plural_of(OwnerKind kind) {
  switch (kind) {
    case OwnerKind::category:
      return "categories";
    case OwnerKind::component:
      return "components";
    case OwnerKind::layer:
      return "layers";
    case OwnerKind::module:
      return "modules";
    case OwnerKind::phase:
      return "phases";
    case OwnerKind::step:
      break;
  }
  return "steps";
}

}  // namespace tidemark
