"""Arguments that all examples share may be anything; results that all examples share need no axis."""

import functools
from fractions import Fraction

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError

XS = np.array([1.0, 2.0, 3.0])
SHARED = 2.5


# --- arguments ------------------------------------------------------------------------------------------------


class Scale:
    k = 3.0


def double(x):
    return 2 * x


@pytest.mark.parametrize(
    ("shared", "of", "expected"),
    [
        (double, lambda f, x: f(x), 2 * XS),
        (ft.jit(double), lambda f, x: f(x), 2 * XS),
        (Scale(), lambda o, x: o.k * x, 3 * XS),
        (Scale, lambda o, x: o.k * x, 3 * XS),
        (np.float64, lambda f, x: x.astype(f), XS),
        ("sin", lambda name, x: getattr(fnp, name)(x), np.sin(XS)),
        (b"sin", lambda name, x: getattr(fnp, name.decode())(x), np.sin(XS)),
        (Fraction(1, 2), lambda q, x: x * float(q), XS / 2),
        ({"f": double, "a": 2.0}, lambda o, x: o["f"](o["a"] * x), 4 * XS),
        ([double, np.exp], lambda fs, x: fs[1](fs[0](x)), np.exp(2 * XS)),
    ],
)
def test_shared_arguments_may_be_anything(shared, of, expected):
    np.testing.assert_allclose(ft.vmap(of, (None, 0))(shared, XS), expected)
    np.testing.assert_allclose(ft.vmap(ft.vmap(of, (None, 0)), (None, 0))(shared, XS[None])[0], expected)
    np.testing.assert_allclose(ft.jit(functools.partial(ft.vmap(of, (None, 0)), shared))(XS), expected)
    total = ft.grad(lambda x: fnp.sum(ft.vmap(of, (None, 0))(shared, x)))
    np.testing.assert_allclose(total(XS), ft.grad(lambda x: fnp.sum(of(shared, x)))(XS))


def test_a_part_of_an_argument_may_be_anything():
    f = ft.vmap(lambda o: o["f"](o["a"]), ({"f": None, "a": 0},))
    np.testing.assert_array_equal(f({"f": double, "a": XS}), 2 * XS)


def test_what_is_mapped_must_be_an_array():
    with pytest.raises(ArgumentError, match="argument 0 \\('f'\\)"):
        ft.vmap(lambda f, x: x)(double, XS)
    with pytest.raises(ArgumentError, match="masked array"):
        ft.vmap(lambda m, x: x, (None, 0))(np.ma.array([1.0]), XS)


@pytest.mark.parametrize(
    "zero", [np.int64(0), np.int8(0), np.array(0), fnp.asarray(0)], ids=lambda z: type(z).__name__
)
def test_axes_are_any_integers(zero):
    f = ft.vmap(lambda x, y: x + y, in_axes=(zero, [None][0]), out_axes=zero)
    np.testing.assert_array_equal(f(XS, 1.0), XS + 1)
    np.testing.assert_array_equal(ft.vmap(double, zero)(XS), 2 * XS)
    np.testing.assert_array_equal(ft.vmap(lambda d: d["a"], ({"a": zero},))({"a": XS}), XS)
    assert ft.vmap(lambda: 1.0, in_axes=None, axis_size=zero + 3)().shape == (3,)
    for refused in (0.0, True, "0"):
        with pytest.raises(ArgumentError):
            ft.vmap(double, refused)(XS)


# --- results --------------------------------------------------------------------------------------------------


def by_custom_vjp(x, y):
    f = ft.custom_vjp(lambda x, y: (x * y, fnp.sin(y)))
    f.defvjp(
        lambda x, y: ((x * y, fnp.sin(y)), (x, y)),
        lambda r, g: (g[0] * r[1], g[0] * r[0] + g[1] * fnp.cos(r[1])),
    )
    return f(x, y)


def by_custom_jvp(x, y):
    f = ft.custom_jvp(lambda x, y: (x * y, fnp.sin(y)))
    f.defjvp(lambda p, t: ((p[0] * p[1], fnp.sin(p[1])), (t[0] * p[1] + p[0] * t[1], t[1] * fnp.cos(p[1]))))
    return f(x, y)


class Both(ft.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, fnp.sin(y)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y, g * x + h * fnp.cos(y)


#: Functions of a mapped and a shared number, whose second result is the same for all.
PROGRAMS = {
    "plain": lambda x, y: (x * y, y * 2),
    "jit": ft.jit(lambda x, y: (x * y, y * 2)),
    "checkpoint": ft.checkpoint(lambda x, y: (x * y, fnp.sin(y))),
    "cond": lambda x, y: lax.cond(y > 0, lambda: (x * y, y * 2), lambda: (x, y)),
    "cond of lanes": lambda x, y: lax.cond(x > 1.5, lambda a, b: (a * b, b), lambda a, b: (a, b), x, y),
    "switch of lanes": lambda x, y: lax.switch(
        fnp.asarray(x, int) % 3, [lambda a, b: (a * b, b), lambda a, b: (a, b), lambda a, b: (b, b)], x, y
    ),
    "scan": lambda x, y: lax.scan(lambda c, _: ((c[0] + c[1], c[1] * 1.5), None), (x, y), None, length=3)[0],
    "fori_loop": lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[0] + c[1] * i, c[1]), (x, y)),
    "while_loop": lambda x, y: lax.while_loop(
        lambda c: c[1] < 9.0, lambda c: (c[0] + c[1], c[1] * 1.5), (x, y)
    ),
    "while_loop of lanes": lambda x, y: lax.while_loop(
        lambda c: c[0] < 9.0, lambda c: (c[0] * 1.5 + c[1], c[1]), (x, y)
    ),
    "custom_vjp": by_custom_vjp,
    "custom_jvp": by_custom_jvp,
    "Function": Both.apply,
    "Function in a scan": lambda x, y: lax.scan(lambda c, _: (Both.apply(*c), None), (x, y), None, length=2)[0],
    "grad": lambda x, y: (x * y, ft.grad(lambda z: z**3)(y)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_shared_results(name):
    f = PROGRAMS[name]
    mapped = ft.vmap(f, (0, None), (0, None))
    stacked = ft.vmap(f, (0, None))  # what it gave before anything was known to be shared
    for g in (mapped, ft.jit(mapped)):
        own, shared = g(XS, SHARED)
        np.testing.assert_allclose(own, [f(x, SHARED)[0] for x in XS])
        np.testing.assert_allclose(shared, f(XS[0], SHARED)[1])
        np.testing.assert_allclose(stacked(XS, SHARED)[1], [f(x, SHARED)[1] for x in XS])

    def total(x, y):
        own, shared = mapped(x, y)
        return fnp.sum(own * own) + fnp.sin(shared)

    def expected(x, y):
        return sum(f(x[i], y)[0] ** 2 for i in range(3)) + fnp.sin(f(x[0], y)[1])

    for slope in (ft.grad, lambda f, n: ft.jit(ft.grad(f, n)), lambda f, n: ft.grad(ft.jit(f), n)):
        for a, b in zip(slope(total, (0, 1))(XS, SHARED), ft.grad(expected, (0, 1))(XS, SHARED), strict=True):
            np.testing.assert_allclose(a, b)
    if "Function" not in name and name != "custom_vjp":
        tangents = (np.ones(3), 0.5)
        got, want = (ft.jvp(h, (XS, SHARED), tangents)[1] for h in (total, expected))
        np.testing.assert_allclose(got, want)

    twice = ft.vmap(mapped, (None, 0), (0, 0))  # the shared number is mapped outside
    np.testing.assert_allclose(twice(XS, XS)[1], [f(XS[0], y)[1] for y in XS])
    assert ft.vmap(f, (0, None))(XS[:0], SHARED)[1].shape == (0,)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: lax.cond(x > 1.5, lambda: y, lambda: y + 1),
        lambda x, y: lax.while_loop(lambda c: c[0] < 9.0, lambda c: (c[0] + c[1], c[1] * 2), (x, y))[1],
        lambda x, y: lax.while_loop(lambda c: c[1] < 9.0, lambda c: (c[0] + 1, c[1] + 1), (x, y))[0],
        lambda x, y: by_custom_vjp(y, x)[1],
    ],
)
def test_results_that_differ_need_an_axis(f):
    with pytest.raises(ArgumentValueError, match="out_axes is None for a result that differs"):
        ft.vmap(f, (0, None), None)(XS, SHARED)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checkpoint])
def test_a_sum_over_lanes_is_shared(wrap):
    total = ft.custom_vjp(lambda x: lax.psum(x, "i"))
    total.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, g: (g,))
    for f in (lambda x: lax.psum(x, "i"), total):
        mapped = ft.vmap(wrap(f), axis_name="i", out_axes=None)
        assert mapped(XS) == ft.jit(mapped)(XS) == 6.0
        np.testing.assert_array_equal(ft.grad(mapped)(XS), np.ones(3))


def test_lanes_whose_host_calls_differ():
    numbers = iter(range(100))
    draw = functools.partial(ft.io_callback, lambda: float(next(numbers)), ft.ShapeDtypeStruct((), float))

    def f(x, y):
        return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, draw() + c[1], c[2]), (0, y, x))[1]

    assert len(set(np.asarray(ft.vmap(f, (0, None))(XS, SHARED)).tolist())) == 3
