/* A library that never finishes loading. */
#include <unistd.h>

__attribute__((constructor)) static void wait_forever(void) {
  for (;;) pause();
}

int kernel(const void* call) { return call == 0; }
