/* Control of a recording from inside the recorded program.
 *
 * The functions live in libtidemark_preload.so. They are declared weak: a program that is not being recorded finds them
 * null and the inline wrappers do nothing, so it needs neither the library nor an #ifdef. From Python without the
 * package (docs/python-recording.md):
 *
 *     tidemark = ctypes.CDLL(None)
 *     if hasattr(tidemark, "tidemark_mark"): tidemark.tidemark_mark(b"epoch 1")
 *
 * All functions may be called from any thread, at any time, and never fail visibly.
 */
#ifndef TIDEMARK_CONTROL_H
#define TIDEMARK_CONTROL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDEMARK_WEAK __attribute__((weak))

/* Stops recording events of this process, and continues. While paused an event costs a few instructions. Allocations
 * and frees in between are not seen; reports say for how long recording was paused. Calls do not nest. */
TIDEMARK_WEAK void tidemark_pause(void);
TIDEMARK_WEAK void tidemark_resume(void);

/* Names this moment, or the beginning and the end of a range of time: an epoch, the evaluation, a step. Reports look at
 * memory at the moment (--at NAME), group it by range (table --by annotation) and take steps from them (leaks). Ranges
 * nest; an end belongs to the latest range of that name. `name` is a string of at most 256 bytes (longer ones are cut),
 * best UTF-8, and copied; null does nothing. Costs about as much as a recorded allocation whose stack is new. */
TIDEMARK_WEAK void tidemark_mark(const char* name);
TIDEMARK_WEAK void tidemark_range_begin(const char* name);
TIDEMARK_WEAK void tidemark_range_end(const char* name);

/* For a library that was not preloaded but loaded later (dlopen, ctypes): connects to the recorder that the environment
 * names and redirects the import slots of PyTorch's libraries to it. Memory allocated earlier is not seen. Returns how
 * many import slots lead to the recorder now, 0 when PyTorch is not loaded. May be called again after more libraries
 * were loaded. */
TIDEMARK_WEAK size_t tidemark_attach(void);

/* Starts a recording of this process by the recorder that `settings` name: "NAME=value", the last one null, as
 * `tidemark recorder` prints them. Redirects import slots as tidemark_attach() does. Returns 0 if this process is being
 * recorded already, or cannot be; the latter prints the reason to stderr. Do not call this function and
 * tidemark_disconnect() at the same time. */
TIDEMARK_WEAK int tidemark_connect(const char* const* settings);

/* Ends the recording: the events of all threads are complete when this returns. Another one may be started. Returns 0
 * if there was none. */
TIDEMARK_WEAK int tidemark_disconnect(void);

/* Returns 1 if this process is being recorded, or will be from its first allocation on; also while paused. */
TIDEMARK_WEAK int tidemark_is_recording(void);

/* Recordings show the Python source file `path` as `name`: for code that is in no file, such as "In[3]" for a
 * notebook's cell. `path` is UTF-8, `name` ASCII; both are copied. Affects code that is first seen after the call. */
TIDEMARK_WEAK void tidemark_name_file(const char* path, const char* name);

/* For the Python package: called by a thread that holds the GIL, between two steps of the program. Answers requests of
 * monitors to this process (`tidemark leak --enable-tracking`), which the main thread otherwise does after its next
 * allocation. Costs a few nanoseconds if there is no request. */
TIDEMARK_WEAK void tidemark_answer(void);

static inline void tidemark_pause_if_recording(void) {
  if (tidemark_pause) tidemark_pause();
}
static inline void tidemark_resume_if_recording(void) {
  if (tidemark_resume) tidemark_resume();
}

static inline void tidemark_mark_if_recording(const char* name) {
  if (tidemark_mark) tidemark_mark(name);
}
static inline void tidemark_range_begin_if_recording(const char* name) {
  if (tidemark_range_begin) tidemark_range_begin(name);
}
static inline void tidemark_range_end_if_recording(const char* name) {
  if (tidemark_range_end) tidemark_range_end(name);
}

#ifdef __cplusplus
}
#endif

#endif
