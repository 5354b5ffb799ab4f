/* Runs jobs with the pool of `functrans/lowering/llvm/c/pool.c`, for ThreadSanitizer and for a compiler without it.
 *
 * usage: pool_driver [fork]; prints "good", or the line of the first check that failed. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int64_t chunk_function(void *, int64_t, int64_t);
typedef bool poll_function(int64_t *);
extern int64_t run_chunks(chunk_function *, void *, int64_t, int64_t, bool, poll_function *, int32_t (*)(void),
                          void (*)(int32_t)) __asm__("functrans.run_chunks");
extern int64_t role(void) __asm__("functrans.role");

/* What the pool takes for granted. */
extern const int32_t sig_setmask __asm__("functrans.sig_setmask");
extern const int32_t clock_monotonic __asm__("functrans.clock_monotonic");
const int32_t sig_setmask = SIG_SETMASK, clock_monotonic = CLOCK_MONOTONIC;
_Static_assert(sizeof(pthread_mutex_t) <= 128 && _Alignof(pthread_mutex_t) <= 64, "room for a mutex");
_Static_assert(sizeof(pthread_cond_t) <= 128 && _Alignof(pthread_cond_t) <= 64, "room for a condition variable");
_Static_assert(sizeof(sigset_t) <= 128, "room for a set of signals");
_Static_assert(sizeof(pthread_t) == 8 && sizeof(pthread_key_t) <= 8, "threads and keys fit in 64 bits");
_Static_assert(sizeof(struct timespec) == 16 && sizeof(time_t) == 8, "two words of time");
_Static_assert(CLOCK_REALTIME == 0, "the clock of pthread_cond_timedwait");

void spinning(void) __asm__("functrans.spinning");
void spinning(void) {}

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) printf("line %d\n", __LINE__), _exit(1);                                                         \
  } while (0)

enum { CHUNKS = 64, TEAM = 4 };
static const int64_t OVERWRITTEN = (int64_t)1 << 62, PENDING = INT64_MIN;

/* Plain memory: the pool must order it. */
struct frame {
  int64_t input, seen[CHUNKS], partial[TEAM];
  int64_t slow, bad_chunk, bad, nested;
};

static bool quiet(int64_t *last) {
  ++*last;
  return false;
}

static bool raising(int64_t *last) { return ++*last > 3; }

static void nap(long microseconds) {
  struct timespec time = {0, microseconds * 1000};
  nanosleep(&time, NULL);
}

static int64_t one(void *frame, int64_t chunk, int64_t worker) {
  (void)worker;
  ++((int64_t *)frame)[chunk];
  return 0;
}

static int64_t body(void *argument, int64_t chunk, int64_t worker) {
  struct frame *frame = argument;
  frame->seen[chunk] += frame->input + chunk;
  frame->partial[worker] += 1;
  if (worker && !role()) return 4096;
  if (frame->slow) nap(frame->slow);
  if (frame->nested) { /* the pool is busy, so these run alone */
    int64_t counts[8] = {0};
    if (run_chunks(one, counts, 8, TEAM, false, quiet, NULL, NULL)) return 8192;
    for (int i = 0; i < 8; ++i)
      if (counts[i] != 1) return 16384;
  }
  return chunk == frame->bad_chunk ? frame->bad : 0;
}

/* A job of which all went well, unless another status is expected: then each chunk has run once at most. */
static void job(struct frame frame, int64_t team, bool probe, int64_t expected) {
  for (int i = 0; i < CHUNKS; ++i) frame.seen[i] = 0;
  for (int i = 0; i < TEAM; ++i) frame.partial[i] = 0;
  if (!frame.bad) frame.bad_chunk = -1;
  int64_t status = run_chunks(body, &frame, CHUNKS, team, probe, quiet, NULL, NULL);
  CHECK(status == expected);
  int64_t sum = 0;
  for (int i = 0; i < TEAM; ++i) sum += frame.partial[i];
  CHECK(sum == CHUNKS || (expected < 0 && sum > 0 && sum < CHUNKS));
  for (int i = 0; i < CHUNKS; ++i) CHECK(frame.seen[i] == frame.input + i || (expected < 0 && frame.seen[i] == 0));
}

static void all_kinds(int64_t seed, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    int64_t team = 2 + (seed + round) % (TEAM - 1); /* workers that are not invited, too */
    job((struct frame){.input = seed + round}, team, round % 2, 0);
    if (round % 16 == 0) job((struct frame){.input = round, .slow = 20}, team, true, 0);
    if (round % 16 == 4) job((struct frame){.input = round, .nested = 1}, team, false, 0);
    if (round % 16 == 8) job((struct frame){.input = round, .bad_chunk = 40, .bad = 5}, team, false, 5);
    if (round % 16 == 12) {
      int64_t bad = PENDING | 2;
      job((struct frame){.input = round, .slow = 1, .bad_chunk = 3, .bad = bad}, team, false, bad);
    }
    if (round % 64 == 32) nap(3000); /* the workers fall asleep */
  }
}

static int64_t damage(void *frame, int64_t chunk, int64_t worker) {
  (void)frame, (void)worker;
  nap(10);
  return chunk % 2 ? OVERWRITTEN + 7 : 3;
}

/* Until it is stopped, in a worker; in the caller's thread, at once. */
static int64_t endless(void *frame, int64_t chunk, int64_t worker) {
  (void)frame, (void)chunk;
  while (worker && role() != 2) nap(100);
  return 0;
}

static _Atomic int32_t blas_threads = 6, blas_wrong;
static int32_t get(void) { return blas_threads; }
static void set(int32_t n) { blas_threads = n; }
static int64_t limited(void *frame, int64_t chunk, int64_t worker) {
  (void)frame, (void)chunk, (void)worker;
  if (blas_threads != 1) blas_wrong = 1;
  return 0;
}

static void alone(void) {
  int64_t none[CHUNKS] = {0};
  CHECK(role() == 0);
  all_kinds(0, 200);
  CHECK(run_chunks(damage, NULL, CHUNKS, TEAM, false, quiet, NULL, NULL) == OVERWRITTEN + 7);
  for (int i = 0; i < 5; ++i) CHECK(run_chunks(endless, NULL, CHUNKS, TEAM, false, raising, NULL, NULL) == PENDING);
  CHECK(run_chunks(limited, NULL, CHUNKS, TEAM, false, quiet, get, set) == 0);
  CHECK(blas_threads == 6 && !blas_wrong);
  CHECK(run_chunks(one, none, CHUNKS, 1, false, raising, NULL, NULL) == PENDING && none[3] == 1 && none[4] == 0);
  CHECK(run_chunks(one, none, 1, TEAM, true, quiet, NULL, NULL) == 0 && none[0] == 2);
  CHECK(role() == 0);
}

static void *caller(void *number) {
  all_kinds((int64_t)number * 1000, 300);
  return NULL;
}

static void several(void) {
  pthread_t threads[4];
  for (int64_t i = 0; i < 4; ++i) CHECK(!pthread_create(&threads[i], NULL, caller, (void *)i));
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

static void in_children(int depth) {
  for (int i = 0; i < 5 && depth; ++i) {
    if (i % 2) nap(3000); /* with workers asleep, and awake */
    pid_t child = fork();
    if (!child) {
      all_kinds(depth, 40);
      in_children(depth - 1);
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    all_kinds(depth, 20);
  }
}

int main(int count, char **arguments) {
  (void)arguments;
  alarm(240); /* a lost wake-up ends the test */
  several();  /* they race for the pool's creation, too */
  alone();
  if (count > 1) in_children(2);
  puts("good");
  return 0;
}
