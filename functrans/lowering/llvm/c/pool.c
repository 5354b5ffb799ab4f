/* The pool of threads of kernels. `pool.py` says what it is for.

This file is the master. `python -m functrans.lowering.llvm.c.generate` has clang make `pool.ll` and `pool_serial.ll` of it,
which is what runs: users need no C compiler. The text serves every 64-bit system. So there are no headers but those
of the compiler, and what systems differ in is either stored in more room than any needs, or declared here and defined by
`pool.py`.

Ordering of memory, in short:

* A job's fields are plain. The thread that owns `busy` writes them while no worker is inside, then opens the door.
* The door is Dekker's algorithm: the owner closes it and then reads how many are inside; a worker goes in and then reads
  whether it is open. All four are sequentially consistent, so one of the two sees the other.
* Sleeping is the same: a worker counts itself as asleep and then reads the generation; the owner changes the generation
  and then reads the number of sleepers. So is waiting for the last worker.
* What is `relaxed` is a number of which only the value matters: no thread reads other memory because of it. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEQUENTIAL memory_order_seq_cst
#define RELAXED memory_order_relaxed

/* The names of LLVM have dots, which those of C cannot have. */
#define NAMED(name) __asm__("functrans." name)

/* `OVERWRITTEN` and `PENDING` of `lowering/loops/ir.py`. */
#define OVERWRITTEN ((int64_t)1 << 62)
#define PENDING INT64_MIN
/* Nanoseconds that a worker looks for a job before it sleeps, and that the owner looks whether the others are done. It is
time, and not a number of turns: what a processor makes of the hint that a loop spins takes from one cycle to 140. */
#define SPIN 25000
/* Turns between two readings of the clock. */
#define TURNS 16
/* Nanoseconds of work that are not worth waking a worker. */
#define SHORT 40000
/* Nanoseconds between two looks at the signals while others work. */
#define LOOK 20000000
#define SECOND 1000000000

/* One chunk of a job: its status is 0 if all went well, and negative if the job must end. */
typedef int64_t chunk_function(void *frame, int64_t chunk, int64_t worker);
/* Whether a signal's handler raised; `last` is when it was asked last. Only the thread that runs the kernel asks. */
typedef bool poll_function(int64_t *last);
typedef int32_t get_function(void);
typedef void set_function(int32_t threads);

int64_t run_chunks(chunk_function *function, void *frame, int64_t chunks, int64_t team, bool probe,
                   poll_function *poll, get_function *get, set_function *set) NAMED("run_chunks");
int64_t role(void) NAMED("role");
const void *pool(void) NAMED("pool");

/* How kernels find the two functions. */
static const void *const table[2] = {(const void *)run_chunks, (const void *)role};

const void *pool(void) { return table; }

/* A status of memory damage holds a number: the first stays. Others hold bits. */
static int64_t merged(int64_t old, int64_t new) {
  if (old >= OVERWRITTEN) return old;
  return new >= OVERWRITTEN ? new : old | new;
}

/* The chunks from a number on in this thread; some have the status `total`. */
static __attribute__((noinline)) int64_t alone(chunk_function *function, void *frame, int64_t first, int64_t chunks,
                                               int64_t total, poll_function *poll, int64_t *last) {
  int64_t chunk = first;
  do {
    total = merged(total, function(frame, chunk, 0));
    if (poll(last)) total |= PENDING;
  } while (total >= 0 && ++chunk < chunks);
  return total;
}

#ifdef SERIAL /* Without POSIX threads. */

int64_t role(void) { return 0; }

int64_t run_chunks(chunk_function *function, void *frame, int64_t chunks, int64_t team, bool probe,
                   poll_function *poll, get_function *get, set_function *set) {
  int64_t last = 0;
  (void)team, (void)probe, (void)get, (void)set;
  return alone(function, frame, 0, chunks, 0, poll, &last);
}

#else

/* POSIX, for systems whose `long` and pointers have 64 bits. `pthread_key_t` has 32 on Linux and 64 on macOS: a register
holds either, and the zeros above 32 bits stay. */
typedef uint64_t thread_type;
typedef uint64_t key_type;
typedef struct { _Alignas(64) char room[128]; } lock_type;
struct time { int64_t seconds, nanoseconds; };
int32_t getpid(void);
int32_t pthread_create(thread_type *, const void *, void *(*)(void *), void *);
int32_t pthread_detach(thread_type);
int32_t pthread_mutex_init(lock_type *, const void *);
int32_t pthread_mutex_lock(lock_type *);
int32_t pthread_mutex_unlock(lock_type *);
int32_t pthread_cond_init(lock_type *, const void *);
int32_t pthread_cond_wait(lock_type *, lock_type *);
int32_t pthread_cond_timedwait(lock_type *, lock_type *, const struct time *);
int32_t pthread_cond_signal(lock_type *);
int32_t pthread_cond_broadcast(lock_type *);
int32_t pthread_key_create(key_type *, const void *);
void *pthread_getspecific(key_type);
int32_t pthread_setspecific(key_type, const void *);
int32_t pthread_sigmask(int32_t, const void *, void *);
int32_t sigfillset(void *);
int32_t clock_gettime(int32_t, struct time *);

/* What `pool.py` defines: the processor's hint that a loop spins, and two numbers of the system. */
void spinning(void) NAMED("spinning");
extern const int32_t sig_setmask NAMED("sig_setmask");
extern const int32_t clock_monotonic NAMED("clock_monotonic");
#define CLOCK_REALTIME 0 /* everywhere; the clock of `pthread_cond_timedwait` */

/* Each on cache lines of its own: what threads write often, and what they only read. */
#define LINE static _Alignas(64)
LINE _Atomic int32_t owner;      /* the process that the pool was made for; -1 while a thread makes it */
LINE _Atomic int32_t busy;       /* 1 while a job runs. Taking it gives the right to all that is plain below */
LINE int64_t workers;            /* how many were started */
static key_type key;             /* a worker's number, in a variable of its thread; read only if there is a key */
static _Atomic int32_t has_key;
LINE _Atomic int64_t generation; /* the number of jobs so far: its change wakes workers */
LINE _Atomic int64_t sleepers;
LINE _Atomic int32_t waiting;    /* 1 while the owner sleeps until the last worker leaves */
LINE _Atomic int32_t open;       /* whether workers may join the job */
LINE _Atomic int64_t inside;     /* the workers that read the job's fields, or try to */
LINE _Atomic int64_t next_chunk;
LINE _Atomic int64_t status;
LINE _Atomic int32_t stop;       /* 1 if the other chunks need not be done */
LINE struct {
  chunk_function *function;
  void *frame;
  int64_t chunks, team;
} job;
static lock_type mutex, work, done;

int64_t role(void) {
  /* Acquire: `key` was written before. */
  if (!atomic_load_explicit(&has_key, memory_order_acquire) || !pthread_getspecific(key)) return 0;
  /* Relaxed: that a worker ends its chunk some microseconds later does no harm. */
  return atomic_load_explicit(&stop, RELAXED) ? 2 : 1;
}

/* Take chunks until there is none. The caller's thread passes a function that asks Python for signals. */
static __attribute__((noinline)) void take(int64_t worker, poll_function *poll, int64_t *last) {
  chunk_function *function = job.function;
  void *frame = job.frame;
  int64_t chunks = job.chunks;
  for (;;) {
    /* Relaxed: each number goes to one thread, whatever the order. What chunks write is published by leaving. */
    int64_t chunk = atomic_fetch_add_explicit(&next_chunk, 1, RELAXED);
    if (chunk >= chunks || atomic_load_explicit(&stop, RELAXED)) return;
    int64_t one = function(frame, chunk, worker);
    if (one) {
      /* Relaxed: the owner reads the result when all have left. */
      int64_t seen = atomic_load_explicit(&status, RELAXED);
      while (!atomic_compare_exchange_strong_explicit(&status, &seen, merged(seen, one), RELAXED, RELAXED)) {
      }
      if (one < 0) break;
    }
    if (poll && poll(last)) {
      atomic_fetch_or_explicit(&status, PENDING, RELAXED);
      break;
    }
  }
  atomic_store_explicit(&stop, 1, RELAXED);
}

/* Leave the job. The last one wakes the owner, if it sleeps. */
static void leave(void) {
  /* Sequential, with `waiting`: here "out, then is the owner asleep?", there "asleep, then is one inside?". As a release
  it also hands over what the chunks wrote, to the owner who reads `inside`. */
  if (atomic_fetch_sub_explicit(&inside, 1, SEQUENTIAL) != 1) return;
  if (!atomic_load_explicit(&waiting, SEQUENTIAL)) return;
  /* Under the mutex, so that the owner either has not looked yet or already waits. */
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&done);
  pthread_mutex_unlock(&mutex);
}

static int64_t now(void) {
  struct time time;
  clock_gettime(clock_monotonic, &time);
  return time.seconds * SECOND + time.nanoseconds;
}

/* Look for the time that spinning pays until a number is one, or is not it; returns whether that came. As an acquire it
takes over what was written before the number. */
static bool soon(_Atomic int64_t *place, int64_t number, bool equal) {
  int64_t end = now() + SPIN;
  do {
    for (int64_t turn = 0; turn < TURNS; ++turn) {
      if ((atomic_load_explicit(place, SEQUENTIAL) == number) == equal) return true;
      spinning();
    }
  } while (now() < end);
  return false;
}

/* Wait for another generation than one: spin, then sleep. */
static void await_job(int64_t seen) {
  if (soon(&generation, seen, false)) return;
  pthread_mutex_lock(&mutex);
  /* Sequential, with `generation`: here "asleep, then is there a job?", in `announce` "a job, then is one asleep?". */
  atomic_fetch_add_explicit(&sleepers, 1, SEQUENTIAL);
  while (atomic_load_explicit(&generation, SEQUENTIAL) == seen) pthread_cond_wait(&work, &mutex);
  atomic_fetch_sub_explicit(&sleepers, 1, SEQUENTIAL);
  pthread_mutex_unlock(&mutex);
}

static void *worker(void *argument) {
  int64_t number = (int64_t)argument;
  pthread_setspecific(key, argument);
  for (;;) {
    /* Before the door: a job that is announced after this read ends the wait below, so no job is slept through. */
    int64_t seen = atomic_load_explicit(&generation, SEQUENTIAL);
    /* Sequential, with `open`: in, then look; the owner closes, then counts. If a late worker sees an open door, that of
    this job or of a later one, the owner waits for it; and as it reads what the owner stored, it sees the job's fields. */
    atomic_fetch_add_explicit(&inside, 1, SEQUENTIAL);
    if (atomic_load_explicit(&open, SEQUENTIAL) && number < job.team) take(number, NULL, NULL);
    leave();
    await_job(seen);
  }
  return NULL;
}

/* Make the pool that of this process. Returns false if another thread does so. */
static bool owned(void) {
  int32_t me = getpid(), before = atomic_load_explicit(&owner, SEQUENTIAL);
  if (before == me) return true;
  /* -1 stays if a process was forked at this moment. Its loops run in one thread. */
  if (before == -1 || !atomic_compare_exchange_strong_explicit(&owner, &before, -1, SEQUENTIAL, SEQUENTIAL)) return false;
  /* In a forked process a thread that does not exist there may hold the mutex, or be inside. */
  pthread_mutex_init(&mutex, NULL);
  pthread_cond_init(&work, NULL);
  pthread_cond_init(&done, NULL);
  if (!atomic_load_explicit(&has_key, memory_order_acquire)) {
    if (pthread_key_create(&key, NULL)) {
      atomic_store_explicit(&owner, before, SEQUENTIAL);
      return false;
    }
    atomic_store_explicit(&has_key, 1, memory_order_release); /* `role` reads `key` without owning anything */
  }
  workers = 0;
  atomic_store_explicit(&sleepers, 0, SEQUENTIAL);
  atomic_store_explicit(&inside, 0, SEQUENTIAL);
  atomic_store_explicit(&open, 0, SEQUENTIAL);
  atomic_store_explicit(&waiting, 0, SEQUENTIAL);
  atomic_store_explicit(&stop, 0, SEQUENTIAL);
  atomic_store_explicit(&busy, 0, SEQUENTIAL);
  atomic_store_explicit(&owner, me, SEQUENTIAL); /* publishes all of the above */
  return true;
}

/* Start workers until there are so many, or the system refuses. They block all signals. */
static __attribute__((noinline)) void hire(int64_t wanted) {
  lock_type all, old; /* room for a set of signals */
  sigfillset(&all);
  pthread_sigmask(sig_setmask, &all, &old);
  while (workers < wanted) {
    thread_type thread;
    if (pthread_create(&thread, NULL, worker, (void *)(workers + 1))) break;
    pthread_detach(thread);
    ++workers;
  }
  pthread_sigmask(sig_setmask, &old, NULL);
}

/* Wait until no worker is inside, and look at the signals from time to time. */
static __attribute__((noinline)) void await_workers(poll_function *poll, int64_t *last) {
  if (soon(&inside, 0, true)) return;
  for (;;) {
    pthread_mutex_lock(&mutex);
    atomic_store_explicit(&waiting, 1, SEQUENTIAL); /* then look again: see `leave` */
    if (atomic_load_explicit(&inside, SEQUENTIAL)) {
      struct time time;
      clock_gettime(CLOCK_REALTIME, &time);
      time.nanoseconds += LOOK;
      if (time.nanoseconds >= SECOND) ++time.seconds, time.nanoseconds -= SECOND;
      pthread_cond_timedwait(&done, &mutex, &time);
    }
    atomic_store_explicit(&waiting, 0, SEQUENTIAL);
    pthread_mutex_unlock(&mutex);
    if (!atomic_load_explicit(&inside, SEQUENTIAL)) return;
    if (!atomic_load_explicit(&stop, RELAXED) && poll(last)) {
      atomic_fetch_or_explicit(&status, PENDING, RELAXED);
      atomic_store_explicit(&stop, 1, RELAXED);
    }
  }
}

/* Open the door, and wake the workers that sleep. */
static void announce(void) {
  /* The door before the generation: a worker that sees the new one finds the door open, unless the job is over. */
  atomic_store_explicit(&open, 1, SEQUENTIAL);
  atomic_fetch_add_explicit(&generation, 1, SEQUENTIAL);
  if (!atomic_load_explicit(&sleepers, SEQUENTIAL)) return;
  /* Under the mutex: a worker that counts as asleep and saw the old generation waits by now. */
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&mutex);
}

/* Run a job of some chunks, at least one, with a team of threads; returns the status. To probe is to measure the first
chunk, and run the others alone if they will not take long. `get` and `set` are those of BLAS's threads, or null: while
several threads call BLAS, it has no others. */
int64_t run_chunks(chunk_function *function, void *frame, int64_t chunks, int64_t team, bool probe,
                   poll_function *poll, get_function *get, set_function *set) {
  int64_t last = 0, first = 0, before = 0;
  bool together = chunks > 1 && team > 1;
  if (together && probe) {
    int64_t begin = now();
    before = function(frame, 0, 0);
    int64_t spent = now() - begin;
    if (before < 0) return before;
    first = 1;
    together = spent > (SHORT - 1) / (chunks - 1); /* the product may overflow */
  }
  int32_t idle = 0;
  /* Sequential: as an acquire it takes over what the last owner wrote. */
  if (!together || !owned() || !atomic_compare_exchange_strong_explicit(&busy, &idle, 1, SEQUENTIAL, SEQUENTIAL))
    return alone(function, frame, first, chunks, before, poll, &last);
  int32_t blas = 0;
  if (set) blas = get(), set(1);
  if (workers < team - 1) hire(team - 1);
  /* No worker reads these: the door is closed, and the last owner saw that all had left. */
  job.function = function, job.frame = frame, job.chunks = chunks, job.team = team;
  /* Relaxed: `announce` publishes them. */
  atomic_store_explicit(&next_chunk, first, RELAXED);
  atomic_store_explicit(&status, before, RELAXED);
  atomic_store_explicit(&stop, 0, RELAXED);
  announce();
  take(0, poll, &last);
  atomic_store_explicit(&open, 0, SEQUENTIAL); /* then count: see `worker` */
  await_workers(poll, &last);
  if (set) set(blas);
  int64_t result = atomic_load_explicit(&status, RELAXED);
  atomic_store_explicit(&busy, 0, SEQUENTIAL); /* as a release it hands the plain fields to the next owner */
  return result;
}

#endif
