"""Complex steps where they apply, kinks in reports of single laws, integers left alone, complex conventions."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import (
    LawViolation,
    check,
    gradcheck,
    is_smooth,
    jvp_is_slope,
    vjp_is_adjoint,
    vjp_is_slope,
)
from functrans.testing.complex_step import Traces, complex_slopes

X = np.array([0.3, 0.8, 1.7])
MASK = np.array([True, False, True])


def rule(f, derivative):
    """An elementwise function with a derivative that is written down."""
    g = ft.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * derivative(x),))
    return g


@pytest.mark.parametrize(
    ("f", "df", "dtype", "digits"),
    [
        (lambda x: fnp.exp(fnp.sin(x)) / x, lambda x: np.exp(np.sin(x)) * (np.cos(x) / x - 1 / x**2), "f8", 1e-15),
        (lambda x: x**2.5 + fnp.log1p(x), lambda x: 2.5 * x**1.5 + 1 / (1 + x), "f8", 1e-15),
        (lambda x: fnp.arctan(fnp.sqrt(x)), lambda x: 1 / (2 * np.sqrt(x) * (1 + x)), "f8", 1e-15),
        (ft.jit(lambda x: fnp.where(MASK, x**3, -x)), lambda x: np.where(MASK, 3 * x**2, -1), "f8", 1e-15),
        (lambda x: fnp.tanh(x), lambda x: 1 - np.tanh(x) ** 2, "f4", 1e-6),
    ],
)  # fmt: skip
def test_complex_steps_are_exact_up_to_rounding(f, df, dtype, digits):
    x = X.astype(dtype)
    assert Traces.of(f, [x]).steps.apply
    (slope,), (error,) = complex_slopes(lambda x: [f(x)], [x], [np.ones(3, dtype)], [np.asarray(f(x))])
    np.testing.assert_allclose(slope, df(X), rtol=4 * digits)
    assert (np.abs(slope - df(X)) <= error).all()


@pytest.mark.parametrize(
    "f",
    [
        fnp.abs,
        fnp.sign,
        lambda x: x * fnp.conj(x),
        lambda x: fnp.where(x > 0.5, x, 2 * x),
        lambda x: fnp.linalg.norm(x),
        lambda x: fnp.maximum(x, 1.0),
        lambda x: fnp.linalg.cholesky(fnp.outer(x, x) + fnp.eye(3)),
        lambda x: fnp.asarray(np.sin(np.asarray(x))),
        lambda x: fnp.sort(x),
        lambda x: fnp.real(fnp.exp(1j * x)),
        lambda x: ft.vjp(lambda x: fnp.exp(1j * x), x)[1](np.ones(3) + 2j)[0],
    ],
)
def test_other_functions_have_no_complex_steps(f):
    assert not Traces.of(f, [X]).steps.apply


def test_matrices_step_too():
    a = np.array([[2.0, 0.3], [0.1, 1.5]])
    v = np.array([[0.2, -1.0], [0.7, 0.4]])
    f = lambda a: fnp.linalg.solve(a, fnp.ones(2)) * fnp.linalg.det(a)
    assert Traces.of(f, [a]).steps.apply
    (slope,), _ = complex_slopes(lambda a: [f(a)], [a], [v], [np.asarray(f(a))])
    inverse, det = np.linalg.inv(a), np.linalg.det(a)
    expected = (-inverse @ v @ inverse + np.trace(inverse @ v) * inverse) @ np.ones(2) * det
    np.testing.assert_allclose(slope, expected, rtol=1e-13)


def test_branch_points_have_kinks_although_they_are_analytic():
    assert Traces.of(lambda x: fnp.exp(x) / x, [X]).steps.smooth
    assert not Traces.of(lambda x: fnp.sqrt(x * x), [X]).steps.smooth
    with pytest.raises(LawViolation, match="kink"):
        is_smooth(lambda x: fnp.sqrt(x * x), np.array(1e-8))
    with pytest.raises(LawViolation, match="kink"):
        is_smooth(lambda x: 1 / x, np.array(0.0))


def test_a_branch_that_no_trace_sees_falls_back():
    """The value at the complex point is another, so the step is not used."""

    def f(x):
        return fnp.cos(x) if np.dtype(x.dtype).kind == "c" else fnp.sin(x)

    assert complex_slopes(lambda x: [f(x)], [X], [X], [np.sin(X)]) is None
    jvp_is_slope(f, X)
    jvp_is_slope(fnp.real_if_close, X)


def test_small_gradients_are_compared_relative_to_their_size():
    scale = 1e-3
    wrong = rule(lambda x: scale * fnp.sin(x), lambda x: (1 + 1e-6) * scale * fnp.cos(x))
    with pytest.raises(LawViolation, match="finite differences"):
        vjp_is_slope(wrong, X)
    vjp_is_slope(rule(lambda x: scale * fnp.sin(x), lambda x: scale * fnp.cos(x)), X)
    check(lambda x: x - x, X)  # slopes are zero


# --- kinks --------------------------------------------------------------------------------------------------------


def test_single_laws_tell_kinks_from_wrong_gradients():
    relu = rule(lambda x: fnp.maximum(x, 0.0), lambda x: fnp.where(x >= 0, 1.0, 0.0))
    at = np.array([0.5, 0.0])
    with pytest.raises(LawViolation, match=r"kink.* (0 and \S+|\S+ and 0) for index \(1,\) of output 0"):
        vjp_is_slope(relu, at)
    with pytest.raises(LawViolation, match="kink"):
        gradcheck(relu, (at,))
    with pytest.raises(LawViolation, match="kink"):
        check(lambda x: abs(x), 0.0, derivative=lambda x: 1.0)
    wrong = rule(lambda x: fnp.maximum(x, 0.0), lambda x: fnp.where(x >= 0, 1.1, 0.0))
    with pytest.raises(LawViolation) as caught:
        vjp_is_slope(wrong, np.array([0.5, -0.5]))
    assert "kink" not in str(caught.value)


def test_both_slopes_are_in_the_report():
    with pytest.raises(LawViolation) as caught:
        is_smooth(
            lambda x: fnp.where(x > 1.0, 3.0 * (x - 1.0), -2.0 * (x - 1.0)), np.array([0.2, 1.0]), rng=1
        )
    found = re.search(r"differ, (\S+) and (\S+) for index \(1,\)", str(caught.value))
    below, above = float(found[1]), float(found[2])
    # Along a direction of unknown sign the two are 3 v and -2 v, or -2 v and 3 v.
    assert sorted([above / below, below / above]) == pytest.approx([-1.5, -2 / 3], rel=1e-3)


# --- integers and complex numbers ---------------------------------------------------------------------------------


def test_integers_and_booleans_stay_as_they_are():
    seen = []

    def f(x, n, flag, k):
        seen.append((np.asarray(n).dtype, np.asarray(flag).dtype, type(k)))
        return fnp.where(flag, x**k, x) * n

    args = np.array([0.3, 0.7]), np.array([2, 3], "i4"), np.array([True, False]), 3
    for law in (jvp_is_slope, vjp_is_slope, vjp_is_adjoint):
        law(f, *args)
    gradcheck(f, args)
    check(lambda x, n: x * n, 0.5, np.array(3), derivative=lambda x, n: n)
    assert {(a, b) for a, b, _ in seen} == {(np.dtype("i4"), np.dtype(bool))}


def test_a_missing_conjugate_is_named():
    z = np.array([0.3 + 0.5j, -0.7 + 0.2j])
    size = ft.custom_vjp(lambda z: fnp.sum(fnp.real(z * fnp.conj(z))))
    size.defvjp(lambda z: (size(z), z), lambda z, ct: (2 * ct * z,))
    with pytest.raises(
        LawViolation, match=r"conjugate of the gradient would be right.*df/dx - i df/dy, as in JAX"
    ):
        vjp_is_slope(size, z)
    right = ft.custom_vjp(lambda z: fnp.sum(fnp.real(z * fnp.conj(z))))
    right.defvjp(lambda z: (fnp.sum(fnp.real(z * fnp.conj(z))), z), lambda z, ct: (2 * ct * fnp.conj(z),))
    vjp_is_slope(right, z)
    with pytest.raises(LawViolation, match="conjugate of the gradient would be right"):
        check(abs, 0.3 + 0.4j, derivative=lambda z: z / abs(z))
    wrong = ft.custom_vjp(lambda z: fnp.sum(fnp.real(z * fnp.conj(z))))
    wrong.defvjp(lambda z: (wrong(z), z), lambda z, ct: (3 * ct * fnp.conj(z),))
    with pytest.raises(LawViolation) as caught:
        vjp_is_slope(wrong, z)
    assert "as in JAX" in str(caught.value)
    assert "would be right" not in str(caught.value)


@pytest.mark.parametrize("x", [0.10000001, 0.02, 0.7, 30.0])
@pytest.mark.parametrize("f", [fnp.log, fnp.reciprocal, fnp.sqrt, lambda x: fnp.tanh(20 * x)])
def test_curvature_in_single_precision_is_no_kink(f, x):
    """Steps in single precision are a few hundredths wide."""
    check(f, np.float32(x))
    check(f, np.array([x, 1.0], np.float32))


def test_kinks_in_single_precision_are_found():
    for x in (0.0, 1e-5):
        with pytest.raises(LawViolation, match="kink"):
            check(lambda x: fnp.abs(x) + fnp.exp(x), np.float32(x))
    narrow = ft.jit(
        lambda x: fnp.abs(x.astype(np.float32)) if x.dtype == np.float32 else fnp.sum(x, axis="no")
    )
    with pytest.raises(LawViolation, match="kink"):
        check(narrow, np.float32(0.0))
