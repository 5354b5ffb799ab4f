"""Reshapes move to inputs and values in memory, and change no number; axes of shapes in groups."""

import math
from itertools import product

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.jaxpr.reshapes import reshape_groups, reshape_index, reshape_inlines
from functrans.lowering.jaxpr.simplify import simplify
from functrans.runtime.config import config

X = np.linspace(0.1, 2.0, 24).reshape(2, 3, 4)


def then(np, y):
    return np.reshape(y, (6, 4))


#: Programs, and the order of their last equations if reshapes move as far as they may.
CASES = {
    "a function of an input": (lambda np, x: then(np, np.sin(x)), ["reshape", "sin"]),
    "a chain": (lambda np, x: then(np, np.exp(np.sin(x) * 2.0)), ["reshape", "sin", "mul", "exp"]),
    "two inputs": (lambda np, x: then(np, np.sin(x) * x), ["reshape", "sin", "mul"]),
    "a value that is read twice": (lambda np, x: (then(np, np.sin(x)), np.sin(x)), ["sin", "reshape"]),
    "two shapes": (lambda np, x: (then(np, np.sin(x)), np.reshape(np.sin(x), 24)), ["sin", "reshape", "reshape"]),
    "a sum is in memory": (
        lambda np, x: np.reshape(np.cos(np.sum(np.stack([x, x]), axis=0)), (2, 12)),
        ["reshape", "cos"],
    ),
    "axes that broadcast": (lambda np, x: then(np, np.sin(x) * x[:, :1]), ["sin", "mul", "reshape"]),
    "axes that only split": (lambda np, x: np.reshape(np.sin(x), (2, 3, 2, 2)), ["sin", "reshape"]),
    "there and back": (lambda np, x: np.cos(np.reshape(then(np, np.sin(x)), (2, 3, 4))), ["sin", "cos"]),
    "a transpose in between": (lambda np, x: np.reshape(np.sin(x).T, (12, 2)), ["sin", "transpose", "reshape"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_reshapes_move_to_memory(name):
    f, order = CASES[name]
    jitted = ft.jit(lambda x: f(fnp, x))
    found = [e.primitive.name for e in simplify(jitted.lower(X).jaxpr, strict=False).eqns]
    assert [n for n in found if n in order][-len(order) :] == order
    with config.patch(backend="python"):
        actual = jitted(X)
    for a, b in zip(*map(ft.tree_util.tree_leaves, (actual, f(np, X))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


SHAPES = [s for n in range(4) for s in product((1, 2, 3, 4, 6), repeat=n) if math.prod(s) in (1, 6, 12, 24)]


def test_groups_are_the_smallest_of_equal_size():
    for size in (1, 6, 12, 24):
        shapes = [s for s in SHAPES if math.prod(s) == size]
        for source, target in product(shapes, shapes):
            groups = reshape_groups(source, target)
            assert [a for left, _ in groups for a in left] == [a for a, n in enumerate(source) if n != 1]
            assert [b for _, right in groups for b in right] == [b for b, n in enumerate(target) if n != 1]
            for left, right in groups:
                lefts = {math.prod(source[a] for a in left[:k]) for k in range(1, len(left))}
                rights = {math.prod(target[b] for b in right[:k]) for k in range(1, len(right))}
                assert math.prod(source[a] for a in left) == math.prod(target[b] for b in right)
                assert not lefts & rights


def test_indices_are_those_of_the_same_element():
    """Where no axes are merged, without division."""
    for source, target in product(SHAPES, SHAPES):
        if math.prod(source) != math.prod(target):
            continue
        groups = reshape_groups(source, target)
        assert reshape_inlines(source, target) == all(len(left) == 1 for left, _ in groups)
        if reshape_inlines(source, target):
            numbers = np.arange(math.prod(source)).reshape(source)
            for place in np.ndindex(target):
                index = tuple(reshape_index(source, target, place))
                assert numbers[index] == numbers.reshape(target)[place]
    assert not reshape_inlines((2, 0), (0, 3))
