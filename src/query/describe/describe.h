// The one description of a result, from which come its JSON, JSON Schema, Python class, TypeScript type and the table
// of its keys in the documentation.
//
// A description is a function template in src/query/results that says each key once:
//
//     template <typename Visitor>
//     void describe(Visitor& v, const MatchedMistake& mistake, const Device& device) {
//       v.type("UsualMistake", "A mistake that a leak matches, how that is known, and what to do about it.");
//       v.field("name", named<kUsualMistakeNames>(mistake.mistake), "what it is");
//       v.field("advice", usual_mistake_text(mistake.mistake, device), "what to do");
//     }
//
// - `type(name, doc, module)` comes first and names the object: the class in Python. `module` is where Python has it,
// for
//   what several commands use; otherwise the command's own. A description without it is written into its user's object.
// - `field(key, value, doc)`: what the type is follows from the value: numbers, text, std::optional and pointers
// (null),
//   lists, std::variant, Keyed, and objects that are described. values.h has more: named(), one_of(), when(), in().
// - `field_if(present, key, value, doc)`: a key that is not always there. It may stand at two places of which one is
// taken.
// - `further_field(key, value)`: one whose key is chosen when the program runs.
// - `part(value)`: the fields of another description at this place. A base class in Python, if that has a name.
//   `part_if(present, value)` is for fields that may be absent anyway.
//
// Descriptions are also run on a result that its default constructor made, for its type alone: they must not read what
// such a result has not. A value may be a function, which is called only to write it. A value whose description needs
// more than itself is `in(value, context...)`.
#pragma once

#include "query/describe/json_object.h"
#include "query/describe/types.h"
#include "query/describe/values.h"

/// Behind a description that other files use, which have `template <typename V> void describe(V&, const Type&);` only.
#define TIDEMARK_DESCRIBED(Type)                      \
  template void describe(JsonObject& v, const Type&); \
  template void describe(TypeReader& v, const Type&)
