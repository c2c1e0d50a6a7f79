// Defines what the callers import, and calls it itself through its own import table.
// Not inlined, or its own call would need no slot.
extern "C" [[gnu::noinline]] int slots_add_one(int value) {
  return value + 1;
}

extern "C" int slots_add_two(int value) {
  return value + 2;
}

extern "C" int slots_provider_calls(int value) {
  return slots_add_one(value);
}
