/* How Python calls kernels: five built-in functions. `native_call.py` says what they are for, and makes their words.

This file is the master. `python -m functrans.lowering.llvm.c.generate` has clang make `call.ll` of it, which is what runs.
The text serves every 64-bit system and every CPython: where the parts of objects lie is declared here and defined by
`native_call.py`, which checks it first. So there are no headers but those of the compiler.

`self` is an array of words, whatever Python calls the function with is `leaves`. References are those of the C API:
arguments are borrowed, a result is new, and NULL means that an exception is pending. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of LLVM have dots, which those of C cannot have. */
#define NAMED(name) __asm__("functrans." name)

typedef struct object object;
typedef struct thread thread;

object *PyLong_FromLongLong(int64_t);
int64_t PyLong_AsLongLongAndOverflow(object *, int32_t *);
double PyFloat_AsDouble(object *);
object *PyBool_FromLong(int64_t);
thread *PyEval_SaveThread(void);
void PyEval_RestoreThread(thread *);
object *PyTuple_New(int64_t);
void Py_IncRef(object *);
void Py_DecRef(object *);

/* How many bytes from the beginning of an object its type is, and so on: an object's; a tuple's; an array's. */
extern const int64_t type_at NAMED("type");
extern const int64_t size_at NAMED("size"), items_at NAMED("items");
extern const int64_t data_at NAMED("data"), ndim_at NAMED("ndim"), shape_at NAMED("shape"), strides_at NAMED("strides"),
    dtype_at NAMED("dtype"), flags_at NAMED("flags");
/* NumPy's flags of arrays that kernels take as they are. */
extern const int32_t tidy NAMED("tidy");
#define PART(type, x, place) (*(type *)((char *)(x) + (place)))

object *run(object *self, object *leaves) NAMED("run");
object *run_without_gil(object *self, object *leaves) NAMED("run_without_gil");
object *run_numbers(object *self, object *leaves) NAMED("run_numbers");
object *match(object *self, object *leaves) NAMED("match");
object *results(object *self, object *none) NAMED("results");
const void *calls(void) NAMED("calls");

/* How `native_call.py` finds them. */
static const void *const table[5] = {(const void *)run, (const void *)run_without_gil, (const void *)run_numbers,
                                     (const void *)match, (const void *)results};

const void *calls(void) { return table; }

/* --- running a kernel ---------------------------------------------------------------------------------------- */

/* The words of `run` and `run_without_gil`, after which the kernel's parameters follow. */
struct program {
  int64_t (*kernel)(int64_t leaves, int64_t numbers);
  int64_t numbers[];
};

/* A negative status means that an exception is pending. */
static object *answer(int64_t status) { return status < 0 ? NULL : PyLong_FromLongLong(status); }

object *run(object *self, object *leaves) {
  struct program *program = PART(struct program *, self, data_at);
  return answer(program->kernel((int64_t)leaves, (int64_t)program->numbers));
}

object *run_without_gil(object *self, object *leaves) {
  struct program *program = PART(struct program *, self, data_at);
  thread *state = PyEval_SaveThread();
  int64_t status = program->kernel((int64_t)leaves, (int64_t)program->numbers);
  PyEval_RestoreThread(state);
  return answer(status);
}

/* The words of `run_numbers`, after which the kernel's parameters follow. `kinds` has one for each leaf: what is no array
is a number of Python's. */
enum kind_of_leaf { IS_ARRAY, IS_DOUBLE, IS_INT64, IS_BOOL };
struct mixed_program {
  int64_t (*kernel)(int64_t leaves, int64_t numbers);
  int64_t without_gil, count, kinds[];
};

/* What a kernel reads of an array: the pointer to its data, here to the number beside it. `native_call.py` keeps to these
sizes. */
#define MOST_LEAVES 64
#define MOST_NUMBERS 16
#define HEADER 64
struct number {
  char head[HEADER];
  union {
    double real;
    int64_t integer;
    bool truth;
  } value;
};

/* False where an integer is out of range. */
static bool read_number(object *x, int64_t kind, struct number *number) {
  int32_t overflow = 0;
  if (kind == IS_DOUBLE) {
    number->value.real = PyFloat_AsDouble(x);
  } else {
    int64_t integer = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (kind == IS_INT64)
      number->value.integer = integer;
    else
      number->value.truth = integer != 0;
  }
  PART(void *, number, data_at) = &number->value;
  return overflow == 0;
}

/* The kernel reads a tuple that lies on the stack. The status is 1 if an integer is out of range. */
object *run_numbers(object *self, object *leaves) {
  struct mixed_program *program = PART(struct mixed_program *, self, data_at);
  int64_t count = program->count, next = 0;
  char tuple[HEADER + MOST_LEAVES * sizeof(object *)];
  struct number numbers[MOST_NUMBERS];
  object **from = &PART(object *, leaves, items_at), **to = &PART(object *, tuple, items_at);
  for (int64_t i = 0; i < count; i++) {
    to[i] = from[i];
    if (program->kinds[i] == IS_ARRAY) continue;
    if (!read_number(from[i], program->kinds[i], &numbers[next])) return answer(1);
    to[i] = (object *)&numbers[next++];
  }
  thread *state = program->without_gil ? PyEval_SaveThread() : NULL;
  int64_t status = program->kernel((int64_t)tuple, (int64_t)(program->kinds + count));
  if (program->without_gil) PyEval_RestoreThread(state);
  return answer(status);
}

/* --- checking arguments -------------------------------------------------------------------------------------- */

/* The words of `match`: the number of leaves, then a record for each. Either type is accepted. `axes` is -1 for a leaf
that is not an array, whose record ends there. */
struct leaf {
  object *type, *other_type;
  int64_t axes;
  object *dtype;
  int64_t shape[];
};

static bool is_like(object *x, const struct leaf *leaf) {
  int32_t flags = PART(int32_t, x, flags_at), ndim = PART(int32_t, x, ndim_at);
  if ((flags & tidy) != tidy || ndim != leaf->axes || PART(object *, x, dtype_at) != leaf->dtype) return false;
  const int64_t *shape = PART(const int64_t *, x, shape_at);
  for (int64_t d = 0; d < leaf->axes; d++)
    if (shape[d] != leaf->shape[d]) return false;
  return true;
}

static bool are_like(const int64_t *words, object *leaves) {
  int64_t count = words[0];
  if (PART(int64_t, leaves, size_at) != count) return false;
  object **items = &PART(object *, leaves, items_at);
  const struct leaf *leaf = (const struct leaf *)(words + 1);
  for (int64_t i = 0; i < count; i++) {
    object *x = items[i], *type = PART(object *, x, type_at);
    if (type != leaf->type && type != leaf->other_type) return false;
    if (leaf->axes < 0) {
      leaf = (const struct leaf *)&leaf->dtype;
    } else {
      if (!is_like(x, leaf)) return false;
      leaf = (const struct leaf *)(leaf->shape + leaf->axes);
    }
  }
  return true;
}

object *match(object *self, object *leaves) {
  return PyBool_FromLong(are_like(PART(const int64_t *, self, data_at), leaves));
}

/* --- making results ------------------------------------------------------------------------------------------ */

/* `PyArray_NewFromDescr`, which takes the reference to the dtype, and `PyArray_SetBaseObject`, which takes the base,
even if it fails. */
typedef object *new_function(object *type, object *dtype, int32_t ndim, const int64_t *shape, const int64_t *strides,
                             void *data, int32_t flags, object *like);
typedef int32_t set_base_function(object *array, object *base);
/* `PyDataMem_SetHandler`, which returns the handler before. */
typedef object *set_handler_function(object *handler);

/* The words of `results`, then a record for each. */
struct kinds {
  new_function *new_array;
  set_base_function *set_base;
  set_handler_function *set_handler;
  object *usual, *large; /* handlers of memory: NumPy's, and that of `memory.c` */
  object *plain;         /* ndarray */
  int64_t count;         /* one result is not in a tuple */
};
struct kind {
  object *type, *dtype;
  int64_t is_large, ndim, shape[];
};

static object *new_plain(const struct kinds *kinds, const struct kind *kind) {
  Py_IncRef(kind->dtype);
  return kinds->new_array(kinds->plain, kind->dtype, (int32_t)kind->ndim, kind->shape, NULL, NULL, 0, NULL);
}

/* With a handler of the user's, if there is one. */
static object *new_large(const struct kinds *kinds, const struct kind *kind) {
  object *before = kinds->set_handler(kinds->large);
  if (!before) return NULL;
  object *memory = before == kinds->usual ? new_plain(kinds, kind) : NULL;
  object *ours = kinds->set_handler(before);
  if (!ours) {
    if (memory) Py_DecRef(memory);
    memory = NULL;
  } else {
    Py_DecRef(ours);
    if (before != kinds->usual) memory = new_plain(kinds, kind);
  }
  Py_DecRef(before);
  return memory;
}

/* Read-only: a view of a new plain array, which owns the memory, as `wrap` makes it. If a plain array is wanted, that. */
static object *new_result(const struct kinds *kinds, const struct kind *kind) {
  int32_t ndim = (int32_t)kind->ndim;
  object *memory = kind->is_large ? new_large(kinds, kind) : new_plain(kinds, kind);
  if (!memory || kind->type == kinds->plain) return memory;
  Py_IncRef(kind->dtype);
  object *result = kinds->new_array(kind->type, kind->dtype, ndim, kind->shape, PART(int64_t *, memory, strides_at),
                                    PART(void *, memory, data_at), 0, NULL);
  if (!result) {
    Py_DecRef(memory);
  } else if (kinds->set_base(result, memory)) {
    Py_DecRef(result);
    result = NULL;
  }
  return result;
}

object *results(object *self, object *none) {
  const struct kinds *kinds = PART(const struct kinds *, self, data_at);
  const struct kind *kind = (const struct kind *)(kinds + 1);
  (void)none;
  if (kinds->count == 1) return new_result(kinds, kind);
  object *tuple = PyTuple_New(kinds->count);
  if (!tuple) return NULL;
  object **items = &PART(object *, tuple, items_at);
  for (int64_t i = 0; i < kinds->count; i++) {
    items[i] = new_result(kinds, kind);
    if (!items[i]) {
      Py_DecRef(tuple);
      return NULL;
    }
    kind = (const struct kind *)(kind->shape + kind->ndim);
  }
  return tuple;
}
