// A library that a user preloads for reasons of their own.
int tidemark_test_bystander(void);
int tidemark_test_bystander(void) {
  return 4711;
}
