/* Offsets as an interpreter's own headers have them: compiled as C against those, compared in C++ with our table. */
#ifndef TIDEMARK_LAYOUT_FACTS_H
#define TIDEMARK_LAYOUT_FACTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct LayoutFact {
  const char* name; /* of the field of Layout, or of the constant in layout.h */
  size_t value;
};

/* Fills `facts` and returns how many there are; at most `capacity` are written. */
size_t layout_facts(struct LayoutFact* facts, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
