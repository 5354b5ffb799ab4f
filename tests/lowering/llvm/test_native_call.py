import gc
import subprocess
import sys
import threading
import weakref

import numpy as np

from functrans.lowering.llvm.native_call import native_call


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


def test_the_second_call_of_a_program_without_kernels_in_a_new_process():
    """Nothing has been loaded then that makes LLVM search the process for the functions of Python."""
    code = "import numpy as np, functrans as ft; f = ft.jit(np.fft.fft); f(np.ones(3)); print(f(np.ones(3)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[3.")
