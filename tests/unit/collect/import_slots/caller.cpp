extern "C" int slots_add_one(int value);
extern "C" int slots_add_two(int value);

extern "C" int call_one(int value) {
  return slots_add_one(value) * 10;
}

extern "C" int call_two(int value) {
  return slots_add_two(value) * 10;
}
