"""Objects with ``__jax_array__`` are arrays wherever an array is: in every public function, operators, indices, and as
arguments and results of the transformations.
"""

import operator
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

sys.path.insert(0, str(Path(__file__).parents[1] / "coverage"))

import coverage_table as table

ENTRIES = [e for e in table.load().values() if e.calls[0].drawn and not e.slow]
#: They call the user's function with what the user gave.
OF_USERS = {"lax.custom_root"}


class Holder:
    """An object that says which array it is."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return self.x


class Sized(Holder):
    """NumPy would take it for a sequence."""

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return "no array"


def leaves(x):
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in leaves(part)]
    return [leaf for k in x for leaf in leaves(x[k])] if isinstance(x, dict) else [x]


@pytest.mark.parametrize("namespace", sorted({e.namespace for e in ENTRIES}))
def test_every_public_function_takes_them(namespace):
    for entry in ENTRIES:
        if entry.namespace != namespace or entry.id in OF_USERS:
            continue
        call = entry.calls[0]
        values = [fnp.asarray(x) for x in call.values(entry.seed())]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = leaves(call(entry.subject, values))
            got = leaves(call(entry.subject, [Holder(x) for x in values]))
        for x, y in zip(got, expected, strict=True):
            if isinstance(y, np.ndarray | np.generic):
                assert type(x) is type(y), entry.id
                assert x.dtype == y.dtype, entry.id
                np.testing.assert_array_equal(x, y, err_msg=entry.id)


OPERATORS = [
    getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne")
] + [divmod]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", [Holder, Sized])
def test_operators_on_both_sides(op, kind):
    x, y = fnp.asarray([1.0, 5.0]), fnp.asarray([3.0, 2.0])
    with np.errstate(all="ignore"):
        for f in (lambda x, y: op(x, kind(y)), lambda x, y: op(kind(x), y)):
            for g in (f, ft.jit(f)):
                np.testing.assert_array_equal(g(x, y), op(x, y))


def test_operators_of_weak_numbers():
    weak = ft.grad(lambda x: x * x)(3.0)
    out = weak * Holder(fnp.ones(2, "float32"))
    assert out.dtype == np.float32
    assert (weak < Holder(2.0)).item() is False
    assert (fnp.ones(2, "float32") + Holder(weak)).dtype == np.float32


@pytest.mark.parametrize("kind", [Holder, Sized])
def test_derivatives_go_through(kind):
    x = np.array([1.0, 2.0])
    programs = [
        lambda x: fnp.sum(fnp.sin(kind(x))),
        lambda x: fnp.sum(fnp.stack([kind(x), [1.0, 2.0]]) ** 2),
        lambda x: fnp.sum(fnp.ones(2) * kind(x)),
        lambda x: fnp.sum(fnp.where(x > 1.5, kind(x), 0.0)),
        lambda x: fnp.sum(fnp.zeros(3).at[:2].set(kind(x)) * 2.0),
        lambda x: fnp.ones(2).dot(kind(x)),
        lambda x: kind(fnp.sum(x * x)),
        lambda x: ft.lax.scan(lambda c, y: (kind(c + y * y), None), kind(0.0), kind(x))[0],
    ]
    for f in programs:
        same = ft.grad(lambda x, f=f: fnp.sum(fnp.asarray(f(x))))(x)
        for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
            np.testing.assert_array_equal(g(x), same)
            np.testing.assert_array_equal(g(kind(x)), same)


def test_transformations_take_and_return_them():
    x = np.array([1.0, 2.0])
    for f in (ft.jit, ft.vmap):
        np.testing.assert_array_equal(f(lambda x: Holder(x * 2))(Holder(x)), [2.0, 4.0])
    np.testing.assert_array_equal(ft.jvp(fnp.sin, (Holder(x),), (Holder(x),))[1], np.cos(x) * x)
    np.testing.assert_array_equal(ft.vjp(fnp.sin, Holder(x))[1](Holder(x))[0], np.cos(x) * x)
    assert ft.eval_shape(lambda x: x, Holder(x)).shape == (2,)


def test_indices():
    x = fnp.arange(3.0)
    assert x[Holder(1)] == x[[Holder(1), 0]][0] == 1.0
    f = ft.jit(lambda i: (x[Holder(i)], x[[Holder(i), 0]], x.at[Holder(i)].add(Holder(i))))
    one, two, changed = f(2)
    assert one == two[0] == 2.0
    np.testing.assert_array_equal(changed, [0.0, 1.0, 4.0])
