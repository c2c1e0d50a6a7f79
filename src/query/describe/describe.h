// The single description of a result: source of its JSON, JSON Schema, Python class, TypeScript type and the table of
// its keys in the documentation.
//
// A description is a function template in src/query/results that names each key once:
//
//     template <typename Visitor>
//     void describe(Visitor& v, const MatchedMistake& mistake, const Device& device) {
//       v.type("UsualMistake", "A mistake that a leak matches, how that is known, and what to do about it.");
//       v.field("name", named<kUsualMistakeNames>(mistake.mistake), "what it is");
//       v.field("fix", usual_mistake_words(mistake.mistake, device).fix, "what to do");
//     }
//
// - `type(name, doc, module)` comes first and names the object: the class in Python. `module` is its Python module, for
//   types shared by commands; the default is the command's own. An unnamed description is written into its user's
//   object.
// - `field(key, value, doc)`: the type follows from the value: numbers, text, std::optional and pointers (null),
//   lists, std::variant, Keyed, and objects with descriptions. values.h has more: named(), one_of(), when(), in().
// - `field_if(present, key, value, doc)`: an optional key. It may appear at two places of which one is taken.
// - `further_field(key, value)`: a field with a key that is chosen at run time.
// - `part(value)`: the fields of another description at this place. A base class in Python, if that has a name.
//   `part_if(present, value)` is for fields that may be absent anyway.
//
// Descriptions are also run on default-constructed results to read their types: they must not access data that such a
// result lacks. A value may be a function, which is called only to write the value. A value with a description that
// needs more arguments is `in(value, context...)`.
#pragma once

#include "query/describe/json_object.h"
#include "query/describe/types.h"
#include "query/describe/values.h"

/// After a description that other files use, which declare only `template <typename V> void describe(V&, const
/// Type&);`.
#define TIDEMARK_DESCRIBED(Type)                      \
  template void describe(JsonObject& v, const Type&); \
  template void describe(TypeReader& v, const Type&)
