"""What `Function`s read from namespaces may change between two calls, also in loops, which keep what they derived."""

import types

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.custom.surroundings import fingerprint


class Options:
    scale = 2.0


class More(Options):
    pass


settings = types.ModuleType("settings")
settings.scale = 2.0
settings.other = object()


class Own(ft.Function):
    scale = 2.0

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return Own.scale * g


class ByMethod(Own):
    @classmethod
    def backward(cls, ctx, g):
        return cls.scale * g


class OfOptions(Own):
    @staticmethod
    def backward(ctx, g):
        return More.scale * g


class OfModule(Own):
    @staticmethod
    def backward(ctx, g):
        return settings.scale * g


LOOPS = {
    "scan": lambda f: ft.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]),
    "fori_loop": lambda f: ft.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x)),
    "cond": lambda f: ft.grad(lambda x: lax.cond(True, lambda x: f(f(f(x))), lambda x: x, x)),
    "while_loop": lambda f: ft.jacfwd(
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]
    ),
    "vmap": lambda f: lambda x: ft.vmap(LOOPS["scan"](f))(np.full(2, x))[1],
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("function", "space"),
    [(Own, Own), (ByMethod, ByMethod), (ByMethod, Own), (OfOptions, Options), (OfModule, settings)],
)
def test_attributes_that_change(function, space, loop):
    slope = LOOPS[loop](function.apply)
    for scale in (2.0, 3.0, 2.0):
        space.scale = scale
        assert slope(1.0) == scale**3
    if function is ByMethod is space:
        del ByMethod.scale


def test_fingerprints_of_classes():
    before = fingerprint(Options), fingerprint(More), fingerprint(Own), fingerprint(np.ndarray)
    Options.scale = Own.scale = 5.0
    after = fingerprint(Options), fingerprint(More), fingerprint(Own), fingerprint(np.ndarray)
    Options.scale = Own.scale = 2.0
    assert [a == b for a, b in zip(before, after)] == [False, False, False, True]
    assert before == (fingerprint(Options), fingerprint(More), fingerprint(Own), fingerprint(np.ndarray))
    assert fingerprint(Options) != fingerprint(More)
