"""Native functions that calls of jitted functions share: what is rare, or long, in a call.

``find(table, sizes, n)`` is the address of the entry for `n` sizes, which becomes the table's latest: it searches the
list of their hash, then asks Python. ``run(table, entry, fields, data, status)`` runs an entry that is not in order,
or, if the status is that of a kernel which has failed, lets Python explain it. ``refuse(table, entry, sizes)`` raises
the error about memory for results that has the wrong sizes. All return a positive number, or minus the number of an
exception; see `jitted_tables`, which also describes the words.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from ...lowering.llvm.c.native_call import ARRAY_DATA, TUPLE_ITEMS
from ...lowering.llvm.objects import LoadedCode, compile_object, keep_for_ever
from ...lowering.llvm.store import obtain
from ...lowering.llvm.symbols import load
from ...lowering.processor import processor
from ...lowering.run.native import ALIGNMENT
from ...lowering.undisturbed import undisturbed
from ...runtime.guards import GUARD

#: A table's lists; entries are in that of their hash modulo this, a power of two.
BUCKETS = 64
#: What the hash is multiplied by before a size is added.
MULTIPLIER = 31
#: An entry's words: the next entry of its list, the sizes of the arguments, those of the results, then these fields.
FIELDS = (
    "mode", "kernel", "numbers", "places", "place_count", "scratch", "scratch_count", "frame_bytes",
    "pools", "pool_count", "copies", "copy_count",
)  # fmt: skip
#: The functions, in the order of their addresses in a table.
HELPERS = ("find", "run", "refuse")
#: The number of the table's word for the digest of a program that callers have inlined.
DIGEST = 1 + BUCKETS + len(HELPERS)
#: The modes: a kernel whose buffers are the arguments and the results, in order; a native program; a call of Python.
IN_ORDER, NATIVE, PYTHON = range(3)

_PYTHON = """
@tables = private constant [32 x i8] c"functrans.interop.jitted.tables\\00"
@errors = private constant [32 x i8] c"functrans.interop.jitted.errors\\00"
@lookup = private constant [7 x i8] c"lookup\\00"
@refuse = private constant [7 x i8] c"refuse\\00"
@run = private constant [4 x i8] c"run\\00"
@hold = private constant [13 x i8] c"hold_pending\\00"
@words = private constant [4 x i8] c"LLL\\00"
@objects = private constant [2 x i8] c"O\\00"
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyImport_ImportModule(ptr)
declare ptr @PyObject_CallMethod(ptr, ptr, ptr, ...)
declare i64 @PyLong_AsLongLong(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; The number that an object is, which is released; zero for null.
define internal i64 @number(ptr %object) {
  %none = icmp eq ptr %object, null
  br i1 %none, label %lost, label %there
lost:
  call void @PyErr_Clear()
  ret i64 0
there:
  %n = call i64 @PyLong_AsLongLong(ptr %object)
  call void @Py_DecRef(ptr %object)
  ret i64 %n
}

; The result of a function of three words, which the module `jitted_tables` has.
define internal i64 @ask(ptr %name, ptr %a, ptr %b, ptr %c) noinline cold {
  %gil = call i32 @PyGILState_Ensure()
  %module = call ptr @PyImport_ImportModule(ptr @tables)
  %none = icmp eq ptr %module, null
  br i1 %none, label %answer, label %call
call:
  %result = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(
    ptr %module, ptr %name, ptr @words, ptr %a, ptr %b, ptr %c)
  call void @Py_DecRef(ptr %module)
  br label %answer
answer:
  %object = phi ptr [ null, %0 ], [ %result, %call ]
  %n = call i64 @number(ptr %object)
  call void @PyGILState_Release(i32 %gil)
  ret i64 %n
}
"""

#: Puts an entry at the head of a list: what was written to it before is seen by whoever finds it there.
_PUBLISH = """
define void @functrans.publish(ptr %place, i64 %entry) {
  store atomic i64 %entry, ptr %place release, align 8
  ret void
}
"""

_FIND = """
define i64 @functrans.find(ptr %table, ptr %sizes, i64 %n) {{
  br label %hash
hash:
  %i = phi i64 [ 0, %0 ], [ %i.next, %mix ]
  %h = phi i64 [ 0, %0 ], [ %h.next, %mix ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %mix, label %hashed
mix:
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %h.mixed = mul i64 %h, {multiplier}
  %h.next = add i64 %h.mixed, %size
  %i.next = add i64 %i, 1
  br label %hash
hashed:
  %bucket = urem i64 %h, {buckets}
  %head.number = add i64 %bucket, 1
  %head = getelementptr i64, ptr %table, i64 %head.number
  br label %look
look:
  %place = phi ptr [ %head, %hashed ], [ %entry, %compare ]
  %entry = load atomic ptr, ptr %place acquire, align 8
  %end = icmp eq ptr %entry, null
  br i1 %end, label %new, label %first
first:
  %old = ptrtoint ptr %entry to i64
  br label %compare.next
compare:
  %d.at = getelementptr i64, ptr %sizes, i64 %d
  %wanted = load i64, ptr %d.at
  %d.next = add i64 %d, 1
  %known.at = getelementptr i64, ptr %entry, i64 %d.next
  %known = load i64, ptr %known.at
  %equal = icmp eq i64 %wanted, %known
  br i1 %equal, label %compare.next, label %look
compare.next:
  %d = phi i64 [ 0, %first ], [ %d.next, %compare ]
  %inside = icmp ult i64 %d, %n
  br i1 %inside, label %compare, label %found
new:
  %made = call i64 @ask(ptr @lookup, ptr %table, ptr %sizes, ptr null)
  %good = icmp sgt i64 %made, 0
  br i1 %good, label %found, label %failed
found:
  %result = phi i64 [ %made, %new ], [ %old, %compare.next ]
  store atomic i64 %result, ptr %table release, align 8
  ret i64 %result
failed:
  ret i64 %made
}}
"""

_REFUSE = """
define i64 @functrans.refuse(ptr %table, ptr %entry, ptr %sizes) {
  %n = call i64 @ask(ptr @refuse, ptr %table, ptr %entry, ptr %sizes)
  ret i64 %n
}
"""

_RUN = """
define i64 @functrans.run(ptr %table, ptr %entry, ptr %fields, ptr %data, i64 %failure) {{
  %small = alloca [{small} x i8], align {alignment}
  %bases = alloca [3 x i64]
  %parts = alloca [3 x ptr]
{fields}
  %failed = icmp ne i64 %failure, 0
  %by.python = icmp eq i64 %mode, {python}
  %special = or i1 %failed, %by.python
  br i1 %special, label %explain, label %memory
memory:
  %is.large = icmp ugt i64 %frame_bytes, {small}
  br i1 %is.large, label %allocate, label %prepare
allocate:
  %large = call ptr @malloc(i64 %frame_bytes)
  %no.memory = icmp eq ptr %large, null
  br i1 %no.memory, label %explain, label %prepare
prepare:
  %block = phi ptr [ %small, %memory ], [ %large, %allocate ]
  %block.word = ptrtoint ptr %block to i64
  %up = add i64 %block.word, {below_alignment}
  %frame.word = and i64 %up, -{alignment}
  %frame = inttoptr i64 %frame.word to ptr
  %cells = getelementptr i64, ptr %frame, i64 %place_count
  %base.1 = getelementptr i64, ptr %bases, i64 1
  %base.2 = getelementptr i64, ptr %bases, i64 2
  store ptr %data, ptr %bases
  store ptr %cells, ptr %base.1
  store i64 0, ptr %base.2
  %offsets = inttoptr i64 %scratch to ptr
  %pool.offsets = inttoptr i64 %pools to ptr
  %place.words = inttoptr i64 %places to ptr
  %copy.words = inttoptr i64 %copies to ptr
  br label %scratch.next
scratch.next:
  %s = phi i64 [ 0, %prepare ], [ %s.next, %scratch.one ]
  %s.more = icmp ult i64 %s, %scratch_count
  br i1 %s.more, label %scratch.one, label %pool.next
scratch.one:
  %s.offset.at = getelementptr i64, ptr %offsets, i64 %s
  %s.offset = load i64, ptr %s.offset.at
  %s.memory = getelementptr i8, ptr %frame, i64 %s.offset
  %s.cell = getelementptr ptr, ptr %cells, i64 %s
  store ptr %s.memory, ptr %s.cell
  %s.next = add i64 %s, 1
  br label %scratch.next
pool.next:
  %p = phi i64 [ 0, %scratch.next ], [ %p.next, %pool.one ]
  %p.more = icmp ult i64 %p, %pool_count
  br i1 %p.more, label %pool.one, label %place.next
pool.one:
  %p.offset.at = getelementptr i64, ptr %pool.offsets, i64 %p
  %p.offset = load i64, ptr %p.offset.at
  %p.header = getelementptr i8, ptr %frame, i64 %p.offset
  store [3 x i64] zeroinitializer, ptr %p.header
  %p.next = add i64 %p, 1
  br label %pool.next
place.next:
  %k = phi i64 [ 0, %pool.next ], [ %k.next, %place.one ]
  %k.more = icmp ult i64 %k, %place_count
  br i1 %k.more, label %place.one, label %placed
place.one:
  %k.record = getelementptr [2 x i64], ptr %place.words, i64 %k
  %k.cell = call i64 @cell(ptr %bases, ptr %k.record)
  %k.object = sub i64 %k.cell, {array_data}
  %k.at = getelementptr i64, ptr %frame, i64 %k
  store i64 %k.object, ptr %k.at
  %k.next = add i64 %k, 1
  br label %place.next
placed:
  %no.kernel = icmp eq i64 %kernel, 0
  br i1 %no.kernel, label %ran, label %call
call:
  %function = inttoptr i64 %kernel to ptr
  %tuple = sub i64 %frame.word, {tuple_items}
  %returned = call i64 %function(i64 %tuple, i64 %numbers)
  br label %ran
ran:
  %status = phi i64 [ 0, %placed ], [ %returned, %call ]
  br label %copy.next
copy.next:
  %c = phi i64 [ 0, %ran ], [ %c.next, %copy.one ]
  %c.more = icmp ult i64 %c, %copy_count
  br i1 %c.more, label %copy.one, label %free.next
copy.one:
  %c.record = getelementptr [4 x i64], ptr %copy.words, i64 %c
  %c.out = load i64, ptr %c.record
  %c.to.at = getelementptr ptr, ptr %data, i64 %c.out
  %c.to = load ptr, ptr %c.to.at
  %c.place = getelementptr i64, ptr %c.record, i64 1
  %c.cell = call i64 @cell(ptr %bases, ptr %c.place)
  %c.from.at = inttoptr i64 %c.cell to ptr
  %c.from = load ptr, ptr %c.from.at
  %c.size.at = getelementptr i64, ptr %c.record, i64 3
  %c.size = load i64, ptr %c.size.at
  call void @llvm.memcpy.p0.p0.i64(ptr %c.to, ptr %c.from, i64 %c.size, i1 false)
  %c.next = add i64 %c, 1
  br label %copy.next
free.next:
  %f = phi i64 [ 0, %copy.next ], [ %f.next, %free.done ]
  %f.more = icmp ult i64 %f, %pool_count
  br i1 %f.more, label %free.one, label %freed
free.one:
  %f.offset.at = getelementptr i64, ptr %pool.offsets, i64 %f
  %f.offset = load i64, ptr %f.offset.at
  %f.header = getelementptr i8, ptr %frame, i64 %f.offset
  %f.records = load ptr, ptr %f.header
  %f.empty = icmp eq ptr %f.records, null
  br i1 %f.empty, label %free.done, label %free.records
free.records:
  %f.block = getelementptr i8, ptr %f.records, i64 -{guard}
  call void @free(ptr %f.block)
  br label %free.done
free.done:
  %f.next = add i64 %f, 1
  br label %free.next
freed:
  br i1 %is.large, label %free.frame, label %done
free.frame:
  call void @free(ptr %block)
  br label %done
done:
  %good = icmp eq i64 %status, 0
  br i1 %good, label %return, label %explain
return:
  ret i64 1
explain:
  %why = phi i64 [ %failure, %0 ], [ 0, %allocate ], [ %status, %done ]
  %is.pending = icmp slt i64 %why, 0
  br i1 %is.pending, label %pending, label %python
pending:
  %held = call i64 @held(ptr %parts)
  ret i64 %held
python:
  %answer = call i64 @ask(ptr @run, ptr %table, ptr %entry, ptr %data)
  ret i64 %answer
}}

; The address of the cell that two words of an entry describe: a base, and an offset from it.
define internal i64 @cell(ptr %bases, ptr %record) alwaysinline {{
  %kind = load i64, ptr %record
  %base.at = getelementptr i64, ptr %bases, i64 %kind
  %base = load i64, ptr %base.at
  %offset.at = getelementptr i64, ptr %record, i64 1
  %offset = load i64, ptr %offset.at
  %cell = add i64 %base, %offset
  ret i64 %cell
}}

; Minus the number of the exception that is pending in this thread, which is cleared.
define internal i64 @held(ptr %parts) noinline cold {{
  %gil = call i32 @PyGILState_Ensure()
  %value.at = getelementptr ptr, ptr %parts, i64 1
  %trace.at = getelementptr ptr, ptr %parts, i64 2
  call void @PyErr_Fetch(ptr %parts, ptr %value.at, ptr %trace.at)
  call void @PyErr_NormalizeException(ptr %parts, ptr %value.at, ptr %trace.at)
  %kind = load ptr, ptr %parts
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  %module = call ptr @PyImport_ImportModule(ptr @errors)
  %none = icmp eq ptr %module, null
  br i1 %none, label %answer, label %call
call:
  %result = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %module, ptr @hold, ptr @objects, ptr %value)
  call void @Py_DecRef(ptr %module)
  br label %answer
answer:
  %object = phi ptr [ null, %0 ], [ %result, %call ]
  %n = call i64 @number(ptr %object)
  call void @Py_DecRef(ptr %kind)
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %trace)
  call void @PyGILState_Release(i32 %gil)
  ret i64 %n
}}
"""
#: Frames of up to this many bytes are on the stack.
_SMALL = 1024


@functools.cache
def helper(name: str) -> LoadedCode:
    """One of the functions `HELPERS`, or ``publish(place, entry)``."""
    return undisturbed(_compiled, name)


@functools.cache
def publisher() -> Callable[[int, int], None]:
    """A function that stores the address of an entry at a place in a table, as a release."""
    code = helper("publish")
    publish = ctypes.PYFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)(code.address)
    keep_for_ever(code)
    return publish


def _compiled(name: str) -> LoadedCode:
    if name == "find":
        text = _FIND.format(multiplier=MULTIPLIER, buckets=BUCKETS)
    elif name == "refuse":
        text = _REFUSE
    elif name == "publish":
        text = _PUBLISH
    else:
        text = _RUN.format(
            fields="\n".join([line for i, f in enumerate(FIELDS) for line in _field(i, f)]),
            small=_SMALL,
            alignment=ALIGNMENT,
            below_alignment=ALIGNMENT - 1,
            python=PYTHON,
            array_data=ARRAY_DATA,
            tuple_items=TUPLE_ITEMS,
            guard=GUARD,
        )
    text, cpu, entry = _PYTHON + text, processor(), f"functrans.{name}"
    code, _ = obtain(text, cpu, name, lambda: compile_object(text, entry, cpu), load)
    return code


def _field(i: int, name: str) -> tuple[str, str]:
    return f"  %{name}.at = getelementptr i64, ptr %fields, i64 {i}", f"  %{name} = load i64, ptr %{name}.at"
