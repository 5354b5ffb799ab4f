"""Random histories of Arrays, their views and donations: what is alive keeps its numbers, whatever takes its memory."""

import gc
import random

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.donation import _KeptMemory
from functrans.core.config import config

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
    before = {*_KeptMemory.counts}
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
    assert _KeptMemory.counts.keys() <= before
