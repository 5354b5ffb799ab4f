"""Rules of loops' bodies that are traced again: recognised where nothing has changed, and derived anew where it has."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.control import interned
from functrans.custom.keys import RuleKey
from functrans.custom.surroundings import fingerprint

SCALE = 2.0


def looped(f, n=3):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=n)[0]


def backwards(bwd, **options):
    """The identity with this reverse rule."""
    f = ft.custom_vjp(lambda x: x, **options)
    f.defvjp(lambda x: (x, None), bwd)
    return f


def helper(ct):
    return SCALE * ct


class Holder:
    def __init__(self, scale):
        self.scale = scale


def by_global():
    def change(scale):
        global SCALE
        SCALE = scale

    return lambda kept, ct: (SCALE * ct,), change


def by_helper():
    return lambda kept, ct: (helper(ct),), by_global()[1]


def by_cell():
    scale = 2.0

    def change(new):
        nonlocal scale
        scale = new

    return lambda kept, ct: (scale * ct,), change


def by_default():
    def bwd(kept, ct, scale=2.0):
        return (scale * ct,)

    def change(scale):
        bwd.__defaults__ = (scale,)

    return bwd, change


def by_list():
    scales = [2.0]
    return lambda kept, ct: (scales[0] * ct,), lambda new: scales.__setitem__(0, new)


def by_array():
    scales = np.array([2.0])
    return lambda kept, ct: (scales[0] * ct,), lambda new: scales.__setitem__(0, new)


def by_attribute():
    holder = Holder(2.0)
    return lambda kept, ct: (holder.scale * ct,), lambda new: setattr(holder, "scale", new)


def by_partial():
    holder = Holder(2.0)
    return functools.partial(lambda h, kept, ct: (h.scale * ct,), holder), lambda new: setattr(
        holder, "scale", new
    )


READ = [by_global, by_helper, by_cell, by_default, by_list, by_array, by_attribute, by_partial]


@pytest.mark.parametrize("made", READ)
def test_what_a_rule_reads_may_change_between_two_calls(made):
    bwd, change = made()
    slope = ft.grad(looped(backwards(bwd)))
    for scale in (2.0, 3.0, 2.0):
        change(scale)
        assert slope(1.0) == scale**3


@pytest.mark.parametrize("front", ["custom_jvp", "custom_gradient", "nondiff"])
def test_other_front_ends(front):
    holder = Holder(2.0)
    if front == "custom_jvp":
        f = ft.custom_jvp(lambda x: x)
        f.defjvps(lambda t, out, x: holder.scale * t)
    elif front == "custom_gradient":
        f = ft.custom_gradient(lambda x: (x, lambda ct: holder.scale * ct))
    else:
        g = ft.custom_vjp(lambda h, x: x, nondiff_argnums=0)
        g.defvjp(lambda h, x: (x, None), lambda h, kept, ct: (h.scale * ct,))
        f = functools.partial(g, holder)
    slope = ft.grad(looped(f))
    for scale in (2.0, 3.0):
        holder.scale = scale
        assert slope(1.0) == scale**3


class Scaled(ft.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return helper(g)


def test_a_class_that_reads_global_variables():
    change = by_global()[1]
    slope = ft.grad(looped(Scaled.apply))
    for scale in (2.0, 3.0, 2.0):
        change(scale)
        assert slope(1.0) == scale**3


def test_classes_made_anew_are_recognised():
    def slope(scale):
        class Scaled(ft.Function):
            forward = staticmethod(lambda ctx, x: x)
            backward = staticmethod(lambda ctx, g: scale * g)

        return ft.grad(looped(Scaled.apply, 5))(1.0)

    assert slope(2.0) == 32.0
    known = len(interned._bodies)
    assert slope(2.0) == 32.0
    assert len(interned._bodies) == known
    assert slope(3.0) == 243.0


def test_a_rule_that_has_not_changed_is_recognised():
    def slope(scale):  # functions made anew at each call
        f = backwards(lambda kept, ct: (scale * ct,))
        return ft.grad(looped(f, 5))(1.0)

    assert slope(2.0) == 32.0
    known = len(interned._bodies)
    assert slope(2.0) == 32.0
    assert len(interned._bodies) == known
    assert slope(3.0) == 243.0
    assert len(interned._bodies) > known


@pytest.mark.parametrize(
    "values", [(1, True), (1, 1.0), (0.0, -0.0), ("a", "b"), ((1, 2), [1, 2]), (None, 0)]
)
def test_static_values_that_are_not_the_same_program(values):
    def scale(n):
        return 2.0 if repr(n) == repr(values[0]) else 3.0

    f = ft.custom_vjp(lambda n, x: x, nondiff_argnums=0)
    f.defvjp(lambda n, x: (x, None), lambda n, kept, ct: (scale(n) * ct,))
    for value, wanted in zip(values, (8.0, 27.0)):
        assert ft.grad(looped(functools.partial(f, value)))(1.0) == wanted


@dataclass(frozen=True)
class Frozen:
    n: int


def test_fingerprints():
    def make(n):
        return lambda x: x * n

    def calls_itself(x):
        return calls_itself(x - 1) if x else x

    assert fingerprint(make(2)) == fingerprint(make(2))
    assert hash(fingerprint(make(2))) == hash(fingerprint(make(2)))
    assert fingerprint(make(2)) != fingerprint(make(2.0))
    assert fingerprint(make(make(2))) == fingerprint(make(make(2))) != fingerprint(make(make(3)))
    assert fingerprint(lambda x: x + 1) != fingerprint(lambda x: x + 2)
    assert fingerprint(calls_itself) == fingerprint(calls_itself)
    assert fingerprint(np.nan) == fingerprint(np.float64("nan").item())
    assert fingerprint({"a": [1, 2]}) == fingerprint({"a": [1, 2]}) != fingerprint({"a": [2, 1]})
    assert fingerprint(Frozen(1)) == fingerprint(Frozen(1)) != fingerprint(Frozen(2))
    assert fingerprint(Holder(1)) == fingerprint(Holder(1)) != fingerprint(Holder(2))
    assert fingerprint(np.ones(3)) == fingerprint(np.ones(3)) != fingerprint(np.ones(3, "float32"))
    assert fingerprint(np.ones(10_000)) != fingerprint(np.ones(10_000))
    assert fingerprint(np.random.default_rng(0)) != fingerprint(np.random.default_rng(0))
    cyclic: list = []
    cyclic.append(cyclic)
    assert fingerprint(cyclic) == fingerprint(cyclic)
    assert fingerprint(list(range(10_000))) == fingerprint(list(range(10_000)))


def test_keys():
    assert RuleKey((len, 3), ([1], 2.0)) == RuleKey((len, 3), ([1], 2.0)) != RuleKey((len, 3), ([1], 2))
    unhashable = RuleKey(([1],))
    assert unhashable == unhashable != RuleKey(([1],))
    assert RuleKey((1,)) != 1
