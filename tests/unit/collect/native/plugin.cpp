// A library to be loaded and unloaded: calls back from a frame of PLUGIN_FRAME_BYTES.
extern "C" void plugin_call(void (*visit)(void*), void* argument) {
  char local[PLUGIN_FRAME_BYTES];
  asm volatile("" : : "r"(local) : "memory");
  visit(argument);
  asm volatile("" : : "r"(local) : "memory");
}
