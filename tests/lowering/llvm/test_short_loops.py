"""Short rows are computed in vectors where that is better than vectors of several rows."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.backend import Options
from functrans.lowering.llvm.backend import assembly_of
from functrans.lowering.llvm.emit import emit_llvm
from functrans.lowering.lower import lower
from functrans.lowering.processor import LEVELS

ALL = Options()


def nearest(C, X):
    return fnp.sum(fnp.min(fnp.sum((X[:, None] - C[None]) ** 2, axis=-1), axis=1))


def norms(X):
    return 1 / fnp.sqrt(fnp.sum(X * X, axis=1))


def gradient_of_norms(X):
    return ft.grad(lambda X: fnp.sum(fnp.sum(X * X, axis=1) ** 3))(X)


def columns(X):
    return fnp.sum(X * X, axis=0) ** 3


def exponentials(X):
    return fnp.sum(fnp.exp(-fnp.sum(X * X, axis=1)))


def total(X):
    return fnp.sum(X[:, 1:] * X[:, :-1])


def kernel_of(f, *shapes):
    args = [ft.ShapeDtypeStruct(shape, "f8") for shape in shapes]
    with ft.config.patch(num_threads=1):
        (step,) = lower(ft.jit(f).lower(*args).jaxpr, Options()).steps
    return step.kernel


def rows(f, *shapes, options=ALL):
    """How many loops LLVM is told to make vectors of."""
    text = emit_llvm(kernel_of(f, *shapes), options).text
    return len(re.findall("^!.*followup_vectorized", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("f", "shapes", "number"),
    [
        (nearest, [(10, 16), (900, 16)], 1),
        (nearest, [(10, 8), (900, 8)], 1),
        (nearest, [(10, 7), (900, 7)], 0),  # less than a vector
        (ft.grad(nearest), [(10, 16), (900, 16)], 3),  # the distances, how many are least, the gradient
        (gradient_of_norms, [(900, 16)], 2),
        (gradient_of_norms, [(900, 8)], 0),  # eight rows at a time
        (columns, [(16, 900)], 0),  # the elements of a column do not lie side by side
        (exponentials, [(900, 16)], 0),  # several exponentials at once
        (total, [(900, 16)], 0),  # lanes would be added up in each row
    ],
)
def test_which_loops(f, shapes, number):
    assert rows(f, *shapes) == number
    assert rows(f, *shapes, options=Options(without=frozenset({"unrolling"}))) == 0


@pytest.mark.skipif("x86-64-v3" not in LEVELS, reason="for x86-64")
def test_distances_have_no_scalar_subtraction():
    assembly = assembly_of(kernel_of(nearest, (10, 16), (900, 16)), Options(cpu="x86-64-v3"))
    assert re.search(r"vsubpd\s.*%ymm", assembly)
    assert len(re.findall("vsubsd", assembly)) < 8  # those of the sum of all rows


@settings(max_examples=40)
@given(
    n=st.integers(1, 40),
    k=st.sampled_from([1, 2, 5, 8, 10]),
    d=st.integers(7, 34),
    dtype=st.sampled_from(["f4", "f8"]),
    seed=st.integers(0, 99),
    special=st.sampled_from([0.0, np.nan, np.inf]),
    reverse=st.booleans(),
)
def test_values(n, k, d, dtype, seed, special, reverse):
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(k, d)).astype(dtype)
    X[rng.integers(n), rng.integers(d)] = special
    if reverse:
        X, C = X[:, ::-1], C[::-1]
    tolerance = {"rtol": 2e-5 if dtype == "f4" else 1e-12, "atol": 1e-5 if dtype == "f4" else 1e-12}
    with np.errstate(invalid="ignore"):
        differences = X[:, None].astype("f8") - C
        distances = np.sum(differences**2, axis=-1)
        np.testing.assert_allclose(ft.jit(nearest)(C, X), np.sum(np.min(distances, axis=1)), **tolerance)
        if not special:
            value = ft.jit(ft.grad(nearest))(C, X)
            chosen = np.argmin(distances, axis=1)[:, None] == np.arange(k)
            np.testing.assert_allclose(
                value, -2 * np.sum(chosen[..., None] * differences, axis=0), **tolerance
            )
        x = X.astype("f8")
        slopes = 6 * np.sum(x * x, axis=1, keepdims=True) ** 2 * x
        np.testing.assert_allclose(
            ft.jit(gradient_of_norms)(X), slopes, **{**tolerance, "atol": 1e-2 if dtype == "f4" else 1e-9}
        )
        np.testing.assert_allclose(ft.jit(norms)(X), 1 / np.sqrt(np.sum(x * x, axis=1)), **tolerance)
