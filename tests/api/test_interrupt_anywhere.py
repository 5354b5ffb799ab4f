"""An interrupt at every instant at which Python takes one: nothing is left behind, and all goes on as before.

CPython looks for signals after a call, at the start of a function and at the end of a loop's round. A tracer that is
called before each instruction makes a signal pending just before the chosen one, in C; so it is taken exactly where a
signal from outside could be.
"""

import contextlib
import ctypes
import dis
import inspect
import itertools
import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.callbacks.callback import made_before
from functrans.core.trace import current_trace, eval_trace
from functrans.custom.saving import _hooks as saved_values
from functrans.errors.source import replayed
from functrans.lowering.llvm import store
from functrans.lowering.llvm.objects import ObjectCode
from functrans.lowering.run.executable import Executable
from functrans.lowering.undisturbed import undisturbed
from functrans.runtime.config import config
from functrans.runtime.context import TakenWhole, new_lock, new_rlock
from functrans.scipy.special import polygamma

#: Where instants are counted: functrans's code, and that of the context managers and threads of others in it.
FILES = (
    os.path.dirname(ft.__file__) + os.sep,
    *(inspect.getfile(f) for f in (np.errstate.__enter__, contextlib, threading)),
)
#: After these Python looks for signals.
LOOKS = {dis.opmap[n] for n in ("CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD") if n in dis.opmap}

pytestmark = pytest.mark.skipif(
    sys.implementation.name != "cpython" or threading.current_thread() is not threading.main_thread(),
    reason="needs CPython's signals",
)
# Called as a trace function, with a frame, an event and an argument that it does not look at.
_send = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.py_object, ctypes.py_object)(
    ("PyErr_SetInterrupt", ctypes.pythonapi)
)


class Instants:
    """Runs a function; counts the instants in functrans's code, and interrupts at one of them."""

    _before: ClassVar[dict] = {}

    def __init__(self, at=None, error=KeyboardInterrupt):
        self.at = at
        self.error = error
        self.count = 0

    def run(self, f):
        """The result; None if it was interrupted."""
        handler = signal.signal(signal.SIGINT, self._interrupt)
        sys._getframe().f_trace_opcodes = (
            True  # since 3.12 no instructions are traced if no frame asked before
        )
        sys.settrace(self._called)
        try:
            return f()
        except self.error:
            return None
        finally:
            sys.settrace(None)
            signal.signal(signal.SIGINT, handler)

    def _interrupt(self, number, frame):
        sys.settrace(None)
        raise self.error

    def _called(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(FILES):
            return None
        frame.f_trace = self._stepped  # since 3.13 only a frame with a trace function traces instructions
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._stepped

    def _stepped(self, frame, event, arg):
        if event == "opcode" and frame.f_lasti in self._places(frame.f_code):
            self.count += 1
            if self.count == self.at:
                return _send  # before the next instruction
        return self._stepped

    @classmethod
    def _places(cls, code):
        """The offsets of the instructions that stand before those after which Python looks."""
        known = cls._before.get(code)
        if known is None:
            steps = [i for i in dis.get_instructions(code) if i.opcode != dis.EXTENDED_ARG]
            known = cls._before[code] = {a.offset for a, b in itertools.pairwise(steps) if b.opcode in LOOKS}
        return known


class Cube(ft.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x**2 * g


@ft.custom_vmap
def shifted(x):
    return x + 1.0


shifted.def_vmap(lambda size, batched, x: (x + 1.0, True))


def eager(k):
    f = lambda x: fnp.sum(Cube.apply(x) * fnp.sin(x) + k)
    x = np.array([0.5, 0.7])
    with config.patch(strict=False):
        g = ft.grad(f)(x)
    h = ft.jacfwd(ft.grad(lambda x: fnp.sum(fnp.where(x > 0, x * x, x))))(x)
    v = ft.vmap(ft.grad(lambda x, y: shifted(x) * y), (0, None))(x, 2.0)
    return [np.asarray(a) for a in (g, h, v)]


def compiled(k):
    def f(x):
        c, ys = lax.scan(lambda c, y: (c * 0.5 + fnp.sin(y), c), fnp.sum(x), x)
        c = lax.cond(c > 0, lambda c: c * 2.0, lambda c: c, c)
        seen = ft.pure_callback(
            lambda a: np.asarray(a) + k, ft.ShapeDtypeStruct((), "f8"), lax.stop_gradient(c)
        )
        return ft.checkpoint(lambda c: fnp.exp(-c) * c)(c) + fnp.sum(Cube.apply(ys)) + seen

    x = np.array([0.5, 0.7, 0.1])
    value, slope = ft.jit(ft.value_and_grad(f))(x)
    with config.patch(debug_nans=True):
        rows = ft.jit(ft.vmap(lambda a: fnp.sum(Cube.apply(a))))(np.ones((2, 2)))
    return [np.asarray(a) for a in (value, slope, rows)]


def failing(k):
    """An index out of bounds, noticed by a kernel and looked for by NumPy."""
    try:
        ft.jit(lambda x, i: (x + k)[i])(np.ones(3), 5)
    except IndexError:
        return []
    raise AssertionError


def hooked(k):
    """Hooks as a block and as a decorator, and functions that keep NumPy's warnings to themselves."""
    hooks = ft.saved_values_hooks(lambda x: (x, k), lambda packed: packed[0])
    x = np.array([0.5, 0.7])
    with hooks, hooks:
        g = ft.grad(lambda x: fnp.sum(Cube.apply(x)))(x)
    h = hooks(ft.grad(lambda x: fnp.sum(Cube.apply(x) + fnp.arctan2(x, k))))(x)
    infinite = np.array([k, np.inf, np.nan])
    quiet = (
        fnp.nanmean(infinite),
        fnp.isclose(infinite, infinite),
        polygamma(1, -x),
        fnp.quantile(infinite, 0.5),
    )
    return [np.asarray(a) for a in (g, h, *quiet)]


PROGRAMS = {f.__name__: f for f in (eager, compiled, failing, hooked)}
WARNINGS = np.geterr()


def nothing_is_left():
    assert current_trace.get() is eval_trace
    assert config._store.patch.get() is None
    assert saved_values.get() is None
    assert np.geterr() == WARNINGS
    assert (replayed.get(), made_before.get()) == (None, None)
    assert float(fnp.asarray(1.5)) == 1.5


def same(actual, expected):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        np.testing.assert_array_equal(a, b)


def in_a_thread(f, *args):
    """What another thread computes: it would wait for locks that were left closed."""
    results = []
    thread = threading.Thread(target=lambda: results.append(f(*args)), daemon=True)
    thread.start()
    thread.join(60)
    assert results, "another thread waits for ever"
    return results[0]


def sweep(program, instants):
    expected = program(2.0)
    missed = 0
    for n in instants:
        outcome = Instants(n).run(lambda: program(2.0))
        nothing_is_left()
        missed += outcome is not None
        if outcome is not None:
            same(outcome, expected)
        if n % 5 == 0:
            same(in_a_thread(program, 2.0), expected)
    same(program(2.0), expected)
    same(program(3.0), in_a_thread(program, 3.0))
    return missed


def counted(program):
    program(2.0)
    counting = Instants()
    counting.run(lambda: program(2.0))
    return counting.count


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_instants_by_chance(name):
    program = PROGRAMS[name]
    count = counted(program)
    assert count > 500
    number = 12 if name == "compiled" else 60
    instants = sorted(random.Random(name).sample(range(1, count), number))
    assert sweep(program, instants) < number // 4  # the count differs a little from run to run


@pytest.mark.slow
def test_every_instant_of_a_gradient():
    program = lambda k: [np.asarray(ft.grad(lambda x: Cube.apply(fnp.sin(x)) * k)(0.5))]
    sweep(program, range(1, counted(program)))


def test_every_instant_of_patches():
    @config.patch(strict=True)
    def patched(k):
        with config.patch(specialize_below=3):
            return [np.asarray(config.specialize_below * k)]

    sweep(patched, range(1, counted(patched)))


def test_every_instant_of_compiling_a_program():
    """One that is set up by halves called itself for ever."""
    jaxpr = ft.make_jaxpr(lambda x: x + 1.0)(1.0).jaxpr
    Executable(jaxpr).compile()  # its kernel
    for n in itertools.count(1):
        program = Executable(jaxpr)
        instants = Instants(n)
        done = instants.run(program.compile)
        assert program.call(np.array(2.0)) == [3.0]
        if done:
            break
    assert n > 50


def test_every_instant_of_forgetting_object_code():
    """The next compilation raised a KeyError: what had been forgotten was still counted."""
    large = ObjectCode("entry", (), bytes(store._KEPT // 3))
    for n in itertools.count(1):
        recent = store._Recent()
        recent.put("a", large)
        recent.put("b", large)
        done = Instants(n).run(lambda: recent.clear() or "done")  # noqa: B023
        for key in "cde":
            recent.put(key, large)
        assert recent.get("c") is recent.get("e") is large
        if done:
            break
    assert n > 2


def test_every_instant_of_setting_an_option():
    """The key of programs, which the options decide, changes with them."""
    before = config.specialize_below
    try:
        for n in itertools.count(1):
            instants = Instants(n)
            done = instants.run(lambda: setattr(config, "specialize_below", 1000 + n) or "done")  # noqa: B023
            keys = {config._store.trace_key(), config._store.key_with({})}
            assert len(keys) == 1
            if done:
                break
    finally:
        config.specialize_below = before
    assert n > 3


@pytest.mark.parametrize("make", [TakenWhole, new_lock, new_rlock])
def test_every_instant_of_taking_a_lock(make):
    """Whatever is interrupted, another thread can take it afterwards."""
    lock = make()

    def block():
        with lock:
            return "done"

    def is_free():
        return lock.acquire(False) and (lock.release() or True)

    for n in itertools.count(1):
        instants = Instants(n)
        done = instants.run(block)
        assert in_a_thread(is_free)
        if done:
            break
    assert n > 2 or type(lock) is not TakenWhole


class Alarm(Exception):
    pass


@pytest.mark.parametrize("error", [Alarm, KeyError, RuntimeError, KeyboardInterrupt])
def test_every_instant_of_waiting_for_another_thread(error):
    """What the handler raises comes out as it is, and what was begun is finished."""
    before = threading.active_count(), threading.stack_size()
    for n in itertools.count(1):
        ran = threading.Event()
        instants = Instants(n, error)
        done = instants.run(lambda: undisturbed(lambda: ran.set() or "done"))  # noqa: B023
        assert (threading.active_count(), threading.stack_size()) == before
        assert in_a_thread(undisturbed, int, "3") == 3
        if done:
            break
        assert instants.count == n
    assert n > 5
    assert ran.wait(10)


def test_what_another_thread_raises():
    def fail():
        raise Alarm("from the other thread")

    with pytest.raises(Alarm, match="from the other thread"):
        undisturbed(fail)


def test_without_another_thread(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    size = threading.stack_size()
    assert undisturbed(threading.get_ident) == threading.get_ident()
    assert threading.stack_size() == size


def test_warnings_are_silenced_where_no_interrupt_can_leave_them_so():
    """By `run_quietly` and `quietly`: a block of ``with np.errstate`` can be interrupted before it ends."""
    files = [p for p in Path(FILES[0]).rglob("*.py") if "with np.errstate" in p.read_text()]
    assert [p.name for p in files] == ["context.py"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_instants(name):
    program = PROGRAMS[name]
    count = counted(program)
    points = 40 if name == "compiled" else 150  # each compiles
    sweep(program, range(1, count, max(count // points, 1)))
