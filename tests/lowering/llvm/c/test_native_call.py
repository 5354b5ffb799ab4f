import gc
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

from functrans.arrays.array import Array, WeakArray, weak, wrap
from functrans.lowering.llvm.c.native_call import native_call, result_maker


class Owner:
    """What machine code lives in."""


def compiled(text, name):
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine, engine.get_function_address(name)


WORD = """define i64 @word(i64 %arrays, i64 %numbers) {
  %p = inttoptr i64 %numbers to ptr
  %q = getelementptr i64, ptr %p, i64 1
  %r = load i64, ptr %q
  ret i64 %r
}
"""
RAISING = """define i64 @fail(i64 %arrays, i64 %numbers) {
  %p = inttoptr i64 %numbers to ptr
  %type = load ptr, ptr %p
  call void @PyErr_SetNone(ptr %type)
  ret i64 -1
}
declare void @PyErr_SetNone(ptr)
"""
HELD = """define i64 @held(i64 %arrays, i64 %numbers) {
  %r = call i32 @PyGILState_Check()
  %s = zext i32 %r to i64
  ret i64 %s
}
declare i32 @PyGILState_Check()
"""


def words(*numbers):
    return np.array(numbers, np.int64).tobytes()


def test_the_status_is_returned_and_the_parameters_arrive():
    engine, address = compiled(WORD, "word")
    for value in (0, 1, 255, 1 << 40, (1 << 62) + 3):
        for nogil in (False, True):
            assert native_call(address, words(5, value), nogil, engine)(()) == value


def test_a_negative_status_lets_the_pending_exception_pass():
    engine, address = compiled(RAISING, "fail")
    run = native_call(address, words(id(KeyboardInterrupt)), False, engine)
    for _ in range(3):
        try:
            run(())
        except KeyboardInterrupt:
            continue
        raise AssertionError("no exception")


def test_the_gil_is_held_or_released():
    engine, address = compiled(HELD, "held")
    assert native_call(address, words(), False, engine)(()) == 1
    assert native_call(address, words(), True, engine)(()) == 0
    actual = []
    thread = threading.Thread(target=lambda: actual.append(native_call(address, words(), True, engine)(())))
    thread.start()
    thread.join()
    assert actual == [0]


@pytest.mark.slow
def test_references_are_neither_lost_nor_leaked():
    _engine, address = compiled(WORD, "word")
    owner = Owner()
    gone, arrays = weakref.ref(owner), (np.ones(3),)
    run = native_call(address, words(0, 1 << 40), False, owner)
    before = sys.getrefcount(arrays)
    for _ in range(1000):
        run(arrays)
    assert sys.getrefcount(arrays) == before
    del owner
    gc.collect()
    assert gone() is not None
    del run
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_the_second_call_of_a_program_without_kernels_in_a_new_process():
    """Nothing has been loaded then that makes LLVM search the process for the functions of Python."""
    code = "import numpy as np, functrans as ft; f = ft.jit(np.fft.fft); f(np.ones(3)); print(f(np.ones(3)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[3.")


SHAPES = [(), (5,), (0,), (2, 3), (3, 0, 2), (1, 4, 1), (2,) * 9]


def like(x, y):
    for a, b in ((x, y), (x.base, y.base)):
        assert type(a) is type(b)
        assert (a.dtype, a.shape, a.flags.num) == (b.dtype, b.shape, b.flags.num)
        assert a.strides == b.strides
    assert x.base.base is None


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8", "u4", "?", "f2"])
def test_results_are_what_wrap_makes(dtype):
    dtype = np.dtype(dtype)
    several = result_maker([(Array, dtype, shape) for shape in SHAPES])()
    for shape, x in zip(SHAPES, several, strict=True):
        like(x, wrap(np.empty(shape, dtype)))
        like(result_maker([(Array, dtype, shape)])(), wrap(np.empty(shape, dtype)))
    if dtype in (np.int64, np.float64):
        like(result_maker([(WeakArray, dtype, ())])(), weak(np.empty((), dtype)))
    assert len({x.ctypes.data for x in several}) == len(SHAPES)


@pytest.mark.parametrize("shapes", [[(1 << 45,)], [(4,), (1 << 45,)], [(1 << 62,)]])
def test_results_that_do_not_fit(shapes):
    make = result_maker([(Array, np.dtype(float), shape) for shape in shapes])
    with pytest.raises((MemoryError, ValueError)):
        make()


def test_results_are_freed():
    dtype = np.dtype(float)
    makers = [result_maker([(Array, dtype, (4096,))] * n) for n in (1, 3)]
    fails = result_maker([(Array, dtype, (4096,)), (Array, dtype, (1 << 45,))])
    references = sys.getrefcount(dtype), sys.getrefcount(Array)
    for _ in range(50):
        with pytest.raises(MemoryError):
            fails()
    tracemalloc.start()  # it does not notice that NumPy got no memory
    try:
        for _ in range(50):
            for make in makers:
                make()
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()
    assert references == (sys.getrefcount(dtype), sys.getrefcount(Array))
