"""An error for a number that is not known names the argument on which it depends, and what to write instead."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ConcretizationTypeError

X = np.array([1.0, 2.0, 3.0])


def absolute(x):
    return x if x > 0 else -x


def message(f, *args, **kwargs):
    with pytest.raises(ConcretizationTypeError) as caught:
        f(*args, **kwargs)
    return str(caught.value)


def by_key(w, scale):
    return w["bias"][1] if 2.0 * w["bias"][1] > 0 else scale


def by_keyword(x, *, stop):
    return x[: stop + 1]


class Model:
    def predict(self, x):
        return int(x)


CASES = {
    "if": (lambda: ft.jit(by_key)({"bias": (1.0, 2.0)}, 1.0), "depends on argument 0 ('w')['bias'][1])"),
    "bool": (lambda: ft.jit(lambda x: bool(x))(1.0), "depends on argument 0 ('x'))"),
    "float": (lambda: ft.jit(lambda a, b: a * float(b))(1.0, 2.0), "depends on argument 1 ('b'))"),
    "int of a method": (lambda: ft.jit(Model().predict)(1.0), "depends on argument 0 ('x'))"),
    "range": (lambda: ft.jit(lambda x, n: [x for _ in range(n)])(1.0, 3), "depends on argument 1 ('n'))"),
    "a shape": (lambda: ft.jit(lambda x, n: fnp.zeros(n))(1.0, 3), "depends on argument 1 ('n'))"),
    "a slice": (lambda: ft.jit(by_keyword)(X, stop=1), "depends on argument 'stop')"),
    "a size": (lambda: ft.jit(lambda x: fnp.nonzero(x))(X), "depends on argument 0 ('x'))"),
    "several": (
        lambda: ft.jit(lambda a, b, c: 1 if a * c > 0 else 2)(1.0, 2.0, 3.0),
        "depends on argument 0 ('a'), argument 2 ('c'))",
    ),
    "many": (lambda: ft.jit(lambda *xs: 1 if sum(xs) > 0 else 2)(*map(float, range(7))), "and 3 more)"),
    "behind a static one": (
        lambda: ft.jit(lambda kind, x: absolute(x), static_argnums=0)("a", 1.0),
        "depends on argument 1 ('x'))",
    ),
    "no argument": (lambda: ft.jit(lambda x: int(fnp.sum(fnp.arange(x.size))))(X), "depends on no argument: "),
    "grad of jit": (lambda: ft.grad(ft.jit(absolute))(1.0), "depends on argument 0 ('x'))"),
    "jit of grad": (lambda: ft.jit(ft.grad(absolute))(1.0), "depends on argument 0 ('x'))"),
    "jit of vjp": (lambda: ft.jit(lambda z: ft.vjp(absolute, z)[0])(1.0), "depends on argument 0 ('z'))"),
    "vmap": (lambda: ft.vmap(absolute)(X), "traced by vmap; it depends on argument 0 ('x'))"),
    "vmap of two": (
        lambda: ft.vmap(lambda a, b, c: 1 if a * c["k"] > b else 2, (0, None, 0))(X, 1.0, {"k": X}),
        "depends on argument 0 ('a'), argument 2 ('c')['k'])",
    ),
    "grad of vmap": (lambda: ft.grad(lambda x: fnp.sum(ft.vmap(absolute)(x)))(X), "depends on argument 0 ('x'))"),
    "jit of vmap": (lambda: ft.jit(ft.vmap(absolute))(X), "depends on argument 0 ('x'))"),
    "scan": (
        lambda: lax.scan(lambda carry, row: (carry, absolute(row)), 1.0, X),
        "depends on argument 1 ('row'))",
    ),
    "scan of what the caller has": (
        lambda: ft.jit(lambda x, n: lax.scan(lambda c, _: (c if n > c else x, None), x, None, 2)[0])(1.0, 2.0),
        "depends on argument 0 ('c'), argument 1 ('n') of <lambda>)",
    ),
    "fori_loop": (lambda: lax.fori_loop(0, 3, lambda i, c: c if i > 1 else 2 * c, 1.0), "on argument 0 ('i'))"),
    "while_loop": (
        lambda: lax.while_loop(lambda c: bool(c["k"] < 1), lambda c: c, {"k": 1.0}),
        "depends on argument 0 ('c')['k'])",
    ),
    "cond": (lambda: lax.cond(True, lambda q: absolute(q), lambda q: q, 1.0), "depends on argument 0 ('q'))"),
    "checkpoint": (lambda: ft.checkpoint(absolute)(1.0), "depends on argument 0 ('x'))"),
    "make_jaxpr": (lambda: ft.make_jaxpr(absolute)(1.0), "depends on argument 0 ('x'))"),
    "eval_shape": (lambda: ft.eval_shape(absolute, 1.0), "depends on argument 0 ('x'))"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_argument_is_named(case):
    f, names = CASES[case]
    assert names in message(f)


@pytest.mark.parametrize(
    ("f", "cures"),
    [
        (lambda x: x if x > 0 else -x, ["where(", "lax.cond(", "lax.while_loop", "static_argnums"]),
        (lambda x: [0 for _ in range(x)], ["lax.fori_loop(", "static_argnums"]),
        (lambda x: float(x), ["functrans.numpy", "static_argnums"]),
    ],
)
def test_the_cure_is_named(f, cures):
    text = message(ft.jit(f), 2)
    assert [c for c in cures if c not in text] == []


def test_under_vmap_no_argument_can_be_static():
    text = message(ft.vmap(absolute), X)
    assert "in_axes=None" in text
    assert "static" not in text


def test_a_class_that_checks_what_it_holds_does_not_replace_the_error():
    @ft.tree_util.register_pytree_node_class
    class Checked:
        def __init__(self, value):
            if not hasattr(value, "dtype"):
                raise TypeError("no array")
            self.value = value

        def tree_flatten(self):
            return (self.value,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    text = message(ft.jit(lambda c: absolute(c.value)), Checked(X[0]))
    assert re.search("truth value of .* depends on argument 0", text)
