"""vectorize, apply_along_axis, apply_over_axes, piecewise, choose, fromfunction."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

A = np.arange(1.0, 13.0).reshape(3, 4)
V = np.array([0.5, -1.0, 2.0, 3.0])


def smaller_sum(a, b):
    return fnp.where(a > b, a - b, a + b) ** 2


def test_vectorize_numbers():
    f = fnp.vectorize(smaller_sum)
    reference = np.vectorize(lambda a, b: float(a - b if a > b else a + b) ** 2)
    for args in [(A, 2.0), (A, V), (A[:, :1], V), (3.0, 4.0), (A[:0], V), (A[None, :, :1], V[:1])]:
        out = f(*args)
        expected = np.where(args[0] > args[1], np.subtract(*args), np.add(*args)) ** 2
        assert out.shape == expected.shape
        np.testing.assert_allclose(out, expected)
        if expected.size:
            np.testing.assert_allclose(out, reference(*args))
    np.testing.assert_allclose(f(A, b=V), f(A, V))
    check(f, A, V)
    np.testing.assert_allclose(ft.jit(f)(A, V), f(A, V))
    assert f.__name__ == "smaller_sum"


def test_vectorize_with_a_signature():
    f = fnp.vectorize(lambda m, v: (m @ v, fnp.sum(v)), signature="(n,m),(m)->(n),()")
    reference = np.vectorize(lambda m, v: (m @ v, v.sum()), signature="(n,m),(m)->(n),()")
    m, v = np.random.default_rng(0).standard_normal((2, 1, 3, 4)), np.arange(20.0).reshape(5, 4)
    for got, expected in zip(f(m, v), reference(m, v)):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected)
    check(lambda m, v: f(m, v), m[0, 0], V)
    no_arguments = fnp.vectorize(lambda: fnp.arange(2), signature="->(n)")
    np.testing.assert_array_equal(no_arguments(), [0, 1])


def test_vectorize_options():
    f = fnp.vectorize(lambda p, x: p[0] * x + p[1], excluded=[0])
    np.testing.assert_array_equal(f([2.0, 1.0], V), 2 * V + 1)
    g = fnp.vectorize(lambda x, p: p["a"] * x, excluded={"p"}, otypes=[np.float32], doc="text")
    assert g(V, p={"a": 2}).dtype == np.float32
    assert g.__doc__ == "text"

    @fnp.vectorize
    def square(x):
        return x * x

    @fnp.vectorize(signature="(n)->()")
    def total(x):
        return fnp.sum(x)

    np.testing.assert_array_equal(square([1, 2]), [1, 4])
    np.testing.assert_array_equal(total(A), A.sum(1))


@pytest.mark.parametrize(
    ("make", "args", "kind", "text"),
    [
        (lambda: fnp.vectorize(smaller_sum, signature="n->m"), (1,), ValueError, "not a valid signature"),
        (
            lambda: fnp.vectorize(smaller_sum, signature="(n),(n)->()"),
            (V,),
            ValueError,
            "number of positional",
        ),
        (lambda: fnp.vectorize(smaller_sum, signature="(n),(n)->()"), (V, V[:2]), ValueError, "inconsistent"),
        (lambda: fnp.vectorize(fnp.dot, signature="(n),(n)->(n)"), (V, V), ValueError, "does not match"),
        (lambda: fnp.vectorize(fnp.dot, signature="(n),(n)->(),()"), (V, V), ValueError, "number of outputs"),
        (lambda: fnp.vectorize(fnp.dot, signature="(n),(n)->()"), (V, 1.0), ValueError, "enough axes"),
        (lambda: fnp.vectorize(smaller_sum), (V, A.T), ValueError, "broadcast"),
        (lambda: fnp.vectorize(smaller_sum, otypes="ff"), (V, V), ValueError, "otypes"),
    ],
)
def test_vectorize_errors(make, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        make()(*args)
    assert isinstance(caught.value, errors.FunctransError)


FUNCTIONS = {
    "number": lambda v: v[0] * v[-1],
    "vector": lambda v: v[:2] * 2,
    "matrix": lambda v: v[:, None] * v,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_apply_along_axis(name, axis):
    f = FUNCTIONS[name]
    x = np.arange(24.0).reshape(2, 3, 4)
    for reference in (A, x):
        expected = np.apply_along_axis(f, axis, reference)
        np.testing.assert_array_equal(fnp.apply_along_axis(f, axis, reference), expected)
        np.testing.assert_array_equal(ft.jit(lambda v: np.apply_along_axis(f, axis, v))(reference), expected)
    check(lambda v: fnp.apply_along_axis(f, axis, v), A)


def test_apply(same):
    same("apply_along_axis", fnp.sort if hasattr(fnp, "sort") else fnp.flip, 0, A)
    same("apply_along_axis", lambda v, k, add: v.sum() * k + add, 0, A, 2.0, add=1.0)
    same("apply_along_axis", lambda v: v, 3, A)
    same("apply_along_axis", lambda v: v, 1, np.zeros((0, 3)))
    np.testing.assert_array_equal(
        fnp.apply_over_axes(fnp.sum, A[None], [0, 2]), np.apply_over_axes(np.sum, A[None], [0, 2])
    )
    np.testing.assert_array_equal(
        ft.jit(lambda x: np.apply_over_axes(np.sum, x, 0))(A), A.sum(0, keepdims=True)
    )
    with pytest.raises(errors.ArgumentValueError):
        fnp.apply_over_axes(lambda x, axis: x[0, 0], A, 0)


PIECES = {
    "two": (lambda x: [x < 0, x >= 2], [lambda v: -v, lambda v: v**2]),
    "otherwise": (lambda x: [x < 0, x >= 2], [-1.0, lambda v: v**2, lambda v: v + 10]),
    "overlapping": (lambda x: [x > -2, x > 1], [1.0, 2.0]),
    "one mask": (lambda x: x > 1, [lambda v: v * 2]),
    "one mask and otherwise": (lambda x: x > 1, [lambda v: v * 2, 7]),
}


@pytest.mark.parametrize("case", PIECES)
def test_piecewise(case):
    conditions, functions = PIECES[case]
    several = [A - 5, np.array(3.0), np.zeros(0)] if isinstance(conditions(V), list) else []
    for x in (V, *several, np.arange(5), V.astype(np.float32)):
        expected = np.piecewise(x, conditions(x), functions)
        out = fnp.piecewise(x, conditions(x), functions)
        assert out.dtype == expected.dtype
        np.testing.assert_array_equal(out, expected)
        traced = ft.jit(lambda x: np.piecewise(x, conditions(x), functions))
        np.testing.assert_array_equal(traced(x), expected)
    check(lambda x: fnp.piecewise(x, conditions(x), functions), V + 0.1)


def test_piecewise_outside_of_a_domain():
    def f(x, power):
        return np.piecewise(x, [x > 0, x <= 0], [lambda v, p: np.sqrt(v) ** p, lambda v, p: v * p], power)

    x = np.array([4.0, 0.0, -1.0])
    for gradient in (ft.grad(lambda x: f(x, 3.0).sum()), ft.jit(ft.grad(lambda x: f(x, 3.0).sum()))):
        np.testing.assert_allclose(gradient(x), [3.0, 3.0, 3.0])
        np.testing.assert_allclose(gradient(x - 10), [3.0, 3.0, 3.0])
    with pytest.raises(errors.ArgumentValueError, match="2 or 3 functions"):
        fnp.piecewise(V, [V < 0, V > 0], [1.0])


def test_choose(same):
    i = np.array([[0, 2], [1, 0]])
    rows = [np.array([1, 2]), np.array([[3.0], [4.0]]), 5]
    same("choose", i, rows)
    same("choose", i, np.arange(12).reshape(3, 2, 2))
    same("choose", 1, [10, 20])
    for mode in ("raise", "wrap", "clip", "drop"):
        same("choose", i - 1, rows, mode=mode)
        same("choose", i + 2, rows, mode=mode)
    same("choose", np.array([True, False]), [1.5, 2.5])
    same("choose", np.array([0.5]), rows)
    np.testing.assert_array_equal(ft.jit(lambda i: np.choose(i, rows))(i), np.choose(i, rows))
    np.testing.assert_array_equal(ft.jit(lambda i: i.choose(rows))(i), np.choose(i, rows))
    check(lambda a, b: fnp.choose(i, [a, b, 5.0]), V[:2], V[2:, None])
    for bad in (i + 1, i - 1):
        with pytest.raises(errors.IndexOutOfBoundsError):
            ft.jit(lambda i: np.choose(i, rows))(bad)


def test_fromfunction(same):
    same("fromfunction", lambda i, j: i * 2 + j, (2, 3))
    same("fromfunction", lambda i: i == 1, (3,), dtype=int)
    same("fromfunction", lambda i, k: i * k, (3,), k=2)


def test_vectorize_passes_none_on():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(fnp.vectorize(lambda a, b: a if b is None else a + b)(x, None), x)
    out, none = fnp.vectorize(lambda a, b: (a, b))(x, None)
    np.testing.assert_array_equal(out, x)
    assert none is None
    np.testing.assert_array_equal(fnp.vectorize(lambda a, *, b: a * 2 if b is None else b)(x, b=None), 2 * x)
    inner = fnp.vectorize(lambda a, b, c: fnp.dot(a, c), signature="(n),(),(n)->()")
    np.testing.assert_array_equal(inner(np.ones((2, 3)), None, x), [6, 6])
    with pytest.raises(
        errors.ArgumentValueError, match=r"argument 2 is None, but the signature .* axes \(n\)"
    ):
        inner(x, None, None)
