/* The memory of large arrays, kept for the next one when an array dies. `memory.py` says what it is for.

This file is the master, as `call.c` is. The functions are those of NumPy's `PyDataMem_Handler`; `ctx` is a `store`, whose
words `memory.py` allocates. Blocks come from NumPy's usual handler. Python's lock is held by whoever calls; where there
is none, or a fork has copied a store in use, `enter` fails, and the usual handler does the work. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of LLVM have dots, which those of C cannot have. */
#define NAMED(name) __asm__("functrans." name)

/* Data begins on a page, behind what is known of it: the system copies whole pages between processes fastest. */
#define PAGE 4096
/* Blocks in a store. */
#define BLOCKS 16

struct known {
  void *start;  /* of the memory that the usual handler gave */
  int64_t size; /* of the data: at least what was asked for */
};
#define ROOM (PAGE - 1 + (int64_t)sizeof(struct known))

typedef struct store store;

/* `PyDataMemAllocator`. */
struct allocator {
  void *ctx;
  void *(*allocate)(void *ctx, size_t size);
  void *(*allocate_zeros)(void *ctx, size_t count, size_t size);
  void *(*resize)(void *ctx, void *data, size_t size);
  void (*release)(void *ctx, void *data, size_t size);
};

/* `kept` are the bytes in the `count` blocks, the oldest first; `limit` is the most. `reused` counts. */
struct store {
  struct allocator usual;
  int64_t limit, kept, count, reused;
  _Atomic int64_t busy;
  void *blocks[BLOCKS];
};

void *allocate(store *store, size_t size) NAMED("allocate");
void *allocate_zeros(store *store, size_t count, size_t size) NAMED("allocate_zeros");
void *resize(store *store, void *data, size_t size) NAMED("resize");
void release(store *store, void *data, size_t size) NAMED("release");
void forget(store *store) NAMED("forget");
const void *memory(void) NAMED("memory");

/* How `memory.py` finds them. */
static const void *const table[5] = {(const void *)allocate, (const void *)allocate_zeros, (const void *)resize,
                                     (const void *)release, (const void *)forget};

const void *memory(void) { return table; }

static struct known *known(void *data) { return (struct known *)data - 1; }

static bool enter(store *store) { return !atomic_exchange_explicit(&store->busy, 1, memory_order_acquire); }

static void leave(store *store) { atomic_store_explicit(&store->busy, 0, memory_order_release); }

/* Take a block out. */
static void *taken(store *store, int64_t i) {
  void *data = store->blocks[i];
  store->count--;
  store->kept -= known(data)->size;
  for (; i < store->count; i++) store->blocks[i] = store->blocks[i + 1];
  return data;
}

static void give_back(store *store, void *data) {
  struct known block = *known(data);
  store->usual.release(store->usual.ctx, block.start, (size_t)(block.size + ROOM));
}

/* The block that died last is in the processor's cache. An eighth of it may stay unused. */
static void *found(store *store, int64_t size) {
  for (int64_t i = store->count - 1; i >= 0; i--) {
    int64_t there = known(store->blocks[i])->size;
    if (size <= there && there - size <= there / 8) return taken(store, i);
  }
  return NULL;
}

void *allocate(store *store, size_t size) {
  if (size > INT64_MAX - ROOM) return NULL;
  if (enter(store)) {
    void *data = found(store, (int64_t)size);
    if (data) store->reused++;
    leave(store);
    if (data) return data;
  }
  char *start = store->usual.allocate(store->usual.ctx, size + ROOM);
  if (!start && store->count) {
    forget(store);
    start = store->usual.allocate(store->usual.ctx, size + ROOM);
  }
  if (!start) return NULL;
  void *data = start + ROOM - ((uintptr_t)(start + ROOM) & (PAGE - 1));
  *known(data) = (struct known){start, (int64_t)size};
  return data;
}

void *allocate_zeros(store *store, size_t count, size_t size) {
  if (size && count > (size_t)INT64_MAX / size) return NULL;
  void *data = allocate(store, count * size);
  if (data) __builtin_memset(data, 0, count * size);
  return data;
}

void *resize(store *store, void *data, size_t size) {
  void *other = allocate(store, size);
  if (!other) return NULL;
  size_t before = (size_t)known(data)->size;
  __builtin_memcpy(other, data, before < size ? before : size);
  release(store, data, before);
  return other;
}

void release(store *store, void *data, size_t size) {
  int64_t room = known(data)->size;
  (void)size; /* that of the array, which may have been reshaped to less */
  if (room > store->limit || !enter(store)) {
    give_back(store, data);
    return;
  }
  while (store->count == BLOCKS || store->kept + room > store->limit) give_back(store, taken(store, 0));
  store->blocks[store->count++] = data;
  store->kept += room;
  leave(store);
}

void forget(store *store) {
  if (!enter(store)) return;
  while (store->count) give_back(store, taken(store, 0));
  leave(store);
}
