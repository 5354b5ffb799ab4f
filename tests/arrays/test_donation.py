"""Random histories of Arrays, their views and donations: what is alive keeps its numbers, whatever takes its memory."""

import ctypes
import gc
import pickle
import random

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays import donation
from functrans.arrays.donation import _KeptMemory
from functrans.runtime.config import config

#: Functions, the arguments that they consume, and what they compute.
STEPS = [
    (lambda x: x * 1.5 + 1.0, (0,)),
    (lambda x: x[::-1] * 1.0, (0,)),
    (lambda x: (x + 1.0, x), (0,)),
    (lambda x, y: (y * 2.0, x - y), (0, 1)),
    (lambda x, y: x + y, (1,)),
]
VIEWS = [
    lambda x: x[2:9],
    np.asarray,
    lambda x: x.reshape(4, 4),
    lambda x: x.reshape(4, 4).reshape(16),
    lambda x: x.reshape(4, 4).T,
    lambda x: x.data,
    lambda x: fnp.ravel(x),
]


class History:
    """Arrays and views, each with a copy of its numbers."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.arrays, self.views, self.stale = [], [], []
        self.steps = [(f, ft.jit(f, donate_argnums=donated), donated) for f, donated in STEPS]

    def create(self):
        a = self.numbers.normal(size=16)
        x = ft.donate(a.copy()) if self.rng.random() < 0.3 else fnp.asarray(a)
        self.arrays.append((x, a))

    def view(self):
        v = self.rng.choice(VIEWS)(self.rng.choice(self.arrays)[0])
        is_array = isinstance(v, ft.Array) and v.shape == (16,)
        known = any(v is x for x, _ in self.arrays)
        if not known:
            (self.arrays if is_array and self.rng.random() < 0.7 else self.views).append((v, np.array(v)))

    def call(self):
        f, jitted, donated = self.rng.choice(self.steps)
        count = f.__code__.co_argcount
        chosen = [self.rng.choice(self.arrays) for _ in range(count)]
        expected = f(*[a for _, a in chosen])
        outs = jitted(*[x for x, _ in chosen])
        gone = [chosen[i][0] for i in donated]
        assert all(x.is_deleted() for x in gone)
        self.arrays = [(x, a) for x, a in self.arrays if not any(x is y for y in gone)]
        self.stale += gone if self.rng.random() < 0.3 else []
        pairs = zip(outs, expected) if isinstance(outs, tuple) else [(outs, expected)]
        self.arrays += [(x, np.array(a)) for x, a in pairs]

    def forget(self):
        for part in (self.arrays, self.views):
            if part:
                part.pop(self.rng.randrange(len(part)))

    def check(self):
        for x, a in [*self.arrays, *self.views]:
            np.testing.assert_array_equal(np.asarray(x), a)


@pytest.mark.parametrize("seed", range(3))
def test_random_histories(seed):
    before = {*_KeptMemory.living}
    history = History(seed)
    draw = history.rng.choices
    with config.patch(strict=True, checked=False):
        for n in range(1200):
            while len(history.arrays) < 4:
                history.create()
            (action,) = draw([history.call, history.view, history.forget, history.create], [9, 5, 5, 1])
            action()
            if n % 10 == 0:
                history.check()
            history.stale = history.stale[-5:]
            if len(history.arrays) > 12:
                history.arrays = history.arrays[-8:]
    history.check()
    del history, action
    gc.collect()
    assert _KeptMemory.living.keys() <= before


class _Interface:
    def __init__(self, x):
        self.__array_struct__ = x.__array_struct__


EXPORTS = {
    "memoryview": memoryview,
    "a part of a memoryview": lambda x: memoryview(x)[2:],
    "data": lambda x: x.data,
    "PickleBuffer": lambda x: np.frombuffer(pickle.PickleBuffer(x).raw()),
    "frombuffer": np.frombuffer,
    "ndarray": lambda x: np.ndarray(16, float, x),
    "DLPack": np.from_dlpack,
    "ctypes": lambda x: np.ctypeslib.as_array(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), (16,)),
    "__array_struct__": lambda x: np.asarray(_Interface(x)),
    "flat": lambda x: x.flat,
    "ndenumerate": lambda x: np.ndenumerate(x).iter,
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (4,), (16,)),
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 16)),
    "recarray": lambda x: x.view(np.recarray),
}


@pytest.mark.parametrize("given", [False, True], ids=["own", "given"])
@pytest.mark.parametrize("name", EXPORTS)
def test_what_was_exported_keeps_its_numbers(name, given):
    numbers = np.random.default_rng(0).normal(size=16)
    step = ft.jit(lambda x: x * 1.5 + 1.0, donate_argnums=0)
    for _ in range(3):  # the first call traces
        memory = numbers.copy()
        x = ft.donate(memory) if given else fnp.asarray(memory)
        export = EXPORTS[name](x)
        y = step(x)
        assert x.is_deleted()
        np.testing.assert_array_equal(np.asarray(export), np.asarray(EXPORTS[name](fnp.asarray(numbers))))
        np.testing.assert_allclose(y, numbers * 1.5 + 1.0)


@pytest.mark.parametrize("name", EXPORTS)
def test_results_take_the_memory_again_when_the_export_is_gone(name):
    step = ft.jit(lambda x: x * 1.5 + 1.0, donate_argnums=0)
    x = fnp.arange(16.0)
    export = EXPORTS[name](x)
    y = step(x)
    del export
    place = y.__array_interface__["data"][0]
    assert step(y).__array_interface__["data"][0] == place


def test_everything_is_copied_where_exports_are_not_known(monkeypatch):
    monkeypatch.setattr(donation, "EXPORTS_ARE_KNOWN", False)
    step = ft.jit(lambda x: x * 1.5 + 1.0, donate_argnums=0)
    x = fnp.arange(16.0)
    held = memoryview(x)
    y = step(x)
    assert x.is_deleted()
    assert held.tolist() == list(range(16))
    np.testing.assert_array_equal(y, np.arange(16) * 1.5 + 1.0)


def test_numpys_note_of_exports_is_known_here():
    assert donation.EXPORTS_ARE_KNOWN
