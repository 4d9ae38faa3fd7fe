/* Sums by atomic additions in order of thread arrival: within every bound, but with different bits from run to run. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { kThreads = 4 };

static void add(_Atomic uint32_t* to, float x) {
  uint32_t held = atomic_load_explicit(to, memory_order_relaxed), next;
  do {
    float sum;
    memcpy(&sum, &held, sizeof sum);
    sum += x;
    memcpy(&next, &sum, sizeof next);
  } while (!atomic_compare_exchange_weak_explicit(to, &held, next, memory_order_relaxed, memory_order_relaxed));
}

struct part {
  const float *a, *b;
  float* c;
  int m, k, n, thread;
};

/* Adds the product of this thread's columns of A and rows of B to C. */
static void* split_k(void* argument) {
  const struct part* p = argument;
  for (int i = 0; i < p->m; ++i)
    for (int j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int q = p->thread; q < p->k; q += kThreads) sum += p->a[(int64_t)i * p->k + q] * p->b[(int64_t)q * p->n + j];
      add((_Atomic uint32_t*)(p->c + (int64_t)i * p->n + j), sum);
    }
  return 0;
}

/* A product in which each thread takes a part of k. */
void matmul_split_k(const float* a, const float* b, float* c, int m, int k, int n) {
  memset(c, 0, sizeof(float) * (size_t)m * (size_t)n);
  pthread_t threads[kThreads];
  struct part parts[kThreads];
  for (int t = 0; t < kThreads; ++t) {
    parts[t] = (struct part){a, b, c, m, k, n, t};
    pthread_create(&threads[t], 0, split_k, &parts[t]);
  }
  for (int t = 0; t < kThreads; ++t) pthread_join(threads[t], 0);
}
