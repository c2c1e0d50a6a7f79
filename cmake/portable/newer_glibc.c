// Functions of glibc newer than 2.28 that Debian's archives call: see scripts/portable.sh.
#include <stddef.h>
#include <sys/random.h>

void arc4random_buf(void* bytes, size_t size);

// glibc 2.36. libexpat seeds its hash tables with it.
void arc4random_buf(void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = getrandom((char*)bytes + done, size - done, 0);
    if (got > 0) done += (size_t)got;
  }
}
