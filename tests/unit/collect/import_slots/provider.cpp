// Defines the functions that the callers import, and calls them itself through its own import table. Not inlined,
// because an inlined call would need no slot.
extern "C" [[gnu::noinline]] int slots_add_one(int value) {
  return value + 1;
}

extern "C" int slots_add_two(int value) {
  return value + 2;
}

extern "C" int slots_provider_calls(int value) {
  return slots_add_one(value);
}
