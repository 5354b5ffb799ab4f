"""Decompositions of which only a part is read compute that part."""

import numpy as np
import pytest

import functrans as ft
from functrans.lowering.host.explain_failure import evaluate_on_host
from functrans.lowering.jaxpr.simplify import simplify

A = np.random.default_rng(0).standard_normal((2, 5, 3))
S = A @ np.swapaxes(A, -1, -2)

CASES = {
    "qr": (lambda a: np.linalg.qr(a)[1], A, "qr_triangle", {}),
    "qr, wide and full": (
        lambda a: np.linalg.qr(np.swapaxes(a, -1, -2), mode="complete")[1],
        A,
        "qr_triangle",
        {},
    ),
    "eigh": (lambda s: np.linalg.eigh(s)[0], S, "eigh", {"vectors": False}),
    "eig": (lambda s: np.linalg.eig(s)[0], S, "eig", {"vectors": False}),
    "svd": (lambda a: np.linalg.svd(a)[1], A, "svd", {"vectors": False}),
}
WHOLE = {
    "q": (lambda a: np.linalg.qr(a)[0], A, "qr", {}),
    "r with a row of zeros": (lambda a: np.linalg.qr(a, mode="complete")[1], A, "qr", {"full": True}),
    "vectors of eigh": (lambda s: np.linalg.eigh(s)[1], S, "eigh", {"vectors": True}),
    "right vectors": (lambda a: np.linalg.svd(a)[2], A, "svd", {"vectors": True}),
}


@pytest.mark.parametrize(
    ("f", "x", "name", "params"), [*CASES.values(), *WHOLE.values()], ids=[*CASES, *WHOLE]
)
def test_no_more_than_is_read(f, x, name, params):
    jaxpr = ft.make_jaxpr(f)(x)
    simple = simplify(jaxpr)
    (eqn,) = [e for e in simple.eqns if e.primitive.name in ("qr", "qr_triangle", "eigh", "eig", "svd")]
    assert eqn.primitive.name == name
    assert params.items() <= eqn.params.items()
    np.testing.assert_allclose(
        evaluate_on_host(simple, (x,))[0], evaluate_on_host(jaxpr, (x,))[0], rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(ft.jit(f)(x), f(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_strict_program_keeps_the_routine_unless_the_bits_are_the_same(name):
    f, x, reduced, _ = CASES[name]
    jaxpr = ft.make_jaxpr(f)(x)
    simple = simplify(jaxpr, strict=True)
    names = [e.primitive.name for e in simple.eqns]
    if reduced == "qr_triangle":
        assert "qr_triangle" in names
    else:
        assert all(e.params.get("vectors", True) for e in simple.eqns)
    np.testing.assert_array_equal(evaluate_on_host(simple, (x,))[0], evaluate_on_host(jaxpr, (x,))[0])


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_the_values_alone_are_differentiated(name):
    f, x, *_ = CASES[name]

    def total(x):
        return np.sum(f(x)[..., 0] ** 2)

    np.testing.assert_allclose(ft.jit(ft.grad(total))(x), ft.grad(total)(x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_a_failure_is_raised_all_the_same(name):
    f, x, *_ = CASES[name]
    with pytest.raises(np.linalg.LinAlgError):
        ft.jit(f)(np.full_like(x, np.nan))
