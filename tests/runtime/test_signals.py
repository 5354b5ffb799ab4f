"""Exceptions of signal handlers come out of blocks that replace whatever a user's object raises."""

import functools
import signal
import sys
import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or threading.current_thread() is not threading.main_thread(),
    reason="needs POSIX signals",
)


class Alarm(Exception):
    pass


def raises(*_):
    raise Alarm


class Raiser:
    def method(self, *_):
        raise Alarm

    def __call__(self, *_):
        raise Alarm


HANDLERS = {
    "function": raises,
    "method": Raiser().method,
    "object": Raiser(),
    "partial": functools.partial(raises, 3),
}


@pytest.fixture(params=HANDLERS)
def handled(request):
    before = signal.signal(signal.SIGUSR1, HANDLERS[request.param])
    yield
    signal.signal(signal.SIGUSR1, before)


class Interrupted:
    """Whatever is asked of it, a signal arrives meanwhile."""

    def _now(self, *_):
        signal.raise_signal(signal.SIGUSR1)

    __array__ = __float__ = __index__ = __iter__ = __repr__ = __eq__ = _now
    __hash__ = object.__hash__
    dtype = property(_now)


CALLS = {
    "an operand": lambda x: fnp.sin(x),
    "a dtype": lambda x: fnp.zeros(3, dtype=x),
    "a dtype of a struct": lambda x: ft.ShapeDtypeStruct((3,), x),
    "an axis": lambda x: fnp.sum(np.ones((2, 2)), axis=x),
    "a shape": lambda x: fnp.ones(x),
    "a number": lambda x: fnp.isclose(np.ones(3), 1.0, rtol=x),
}


@pytest.mark.parametrize("name", CALLS)
def test_they_come_out(name, handled):
    with pytest.raises(Alarm):
        CALLS[name](Interrupted())


def test_other_exceptions_are_not_passed_on(handled):
    class Odd:
        def __array__(self, *_, **__):
            raise Alarm

    with pytest.raises(ft.errors.ArgumentError):
        fnp.sin(Odd())
