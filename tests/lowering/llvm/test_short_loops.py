"""Short rows are computed in vectors where that is better than vectors of several rows."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.special as fsp
from functrans import nn, ops
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


def log_of_sums(X):
    return fsp.logsumexp(X, axis=1)


def shares(X):
    return nn.softmax(X, axis=1)


def by_index(X, places):
    return ops.segment_sum(X, places, 50)


def chosen(X, places):
    return X[places]


def kernel_of(f, *shapes):
    args = [ft.ShapeDtypeStruct(shape, "f8" if len(shape) > 1 else "i8") for shape in shapes]
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
        (by_index, [(900, 8), (900,)], 1),  # the branch for a place outside keeps rows out of lanes
        (chosen, [(900, 8), (900,)], 1),  # nothing but moved
        (lambda X: fnp.all(X, axis=0), [(900, 8)], 0),
    ],
)
def test_which_loops(f, shapes, number):
    assert rows(f, *shapes) == number
    assert rows(f, *shapes, options=Options(without=frozenset({"unrolling"}))) == 0


@pytest.mark.skipif("x86-64-v3" not in LEVELS, reason="for x86-64")
@pytest.mark.parametrize(
    ("f", "cpu", "width", "number"),
    [
        (log_of_sums, "x86-64-v3", 10, 2),
        (log_of_sums, "x86-64-v4", 10, 2),
        (log_of_sums, "x86-64-v4", 16, 2),  # for the logarithms, one of each row
        (log_of_sums, "x86-64-v3", 17, 0),
        (log_of_sums, "x86-64-v2", 10, 0),  # no instruction gathers elements
        (shares, "x86-64-v3", 8, 3),
        (shares, "x86-64-v4", 8, 0),  # a row fills a vector
        (shares, "x86-64-v4", 10, 3),
        (lambda X: fnp.sum(fnp.sin(X) * fnp.exp(X), axis=1), "x86-64-v3", 8, 1),
        (lambda X: fnp.sum(fnp.sin(X) * fnp.exp(X), axis=1), "x86-64-v3", 9, 0),  # much to compile
    ],
)
def test_rows_in_lanes(f, cpu, width, number):
    text = emit_llvm(kernel_of(f, (900, width)), Options(cpu=cpu)).text
    assert (
        len(re.findall(r"^!\d+ = distinct !{!\d+, !{!.llvm.loop.unroll.full", text, re.MULTILINE)) == number
    )


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("width", [*range(2, 18), 31])
def test_functions_of_rows(kind, width):
    x = np.random.default_rng(width).normal(size=(37, width)).astype(kind)
    x[3], x[5, -1] = -np.inf, np.inf
    tolerance = 1e-5 if kind == "f4" else 1e-13
    with np.errstate(invalid="ignore"):
        expected = special.logsumexp(x.astype("f8"), axis=1)
        np.testing.assert_allclose(ft.jit(log_of_sums)(x), expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            ft.jit(shares)(x), special.softmax(x, axis=1), rtol=tolerance, atol=tolerance
        )
    x = x[6:]
    slopes = ft.jit(ft.grad(lambda x: (log_of_sums(x) ** 2).sum()))(x)
    expected = 2 * special.logsumexp(x, axis=1, keepdims=True) * special.softmax(x, axis=1)
    np.testing.assert_allclose(slopes, expected, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.skipif("x86-64-v3" not in LEVELS, reason="for x86-64")
@pytest.mark.parametrize(
    "f", [lambda x: fnp.nanmax(x, axis=1), lambda x: fnp.max(fnp.where(x > 1, -np.inf, x), axis=1)]
)
def test_masked_maxima_are_vectors(f):
    assembly = assembly_of(kernel_of(f, (900, 900)), Options(cpu="x86-64-v3"))
    assert re.search(r"vmaxpd\s.*%ymm", assembly)


def test_moved_rows_are_no_calls():
    assembly = assembly_of(kernel_of(lambda x: fnp.roll(x, 3, 1), (900, 900)), Options())
    assert "memcpy" not in assembly
    assert "memmove" not in assembly


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
    odd=st.sampled_from([0.0, np.nan, np.inf]),
    reverse=st.booleans(),
)
def test_values(n, k, d, dtype, seed, odd, reverse):
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(k, d)).astype(dtype)
    X[rng.integers(n), rng.integers(d)] = odd
    if reverse:
        X, C = X[:, ::-1], C[::-1]
    tolerance = {"rtol": 2e-5 if dtype == "f4" else 1e-12, "atol": 1e-5 if dtype == "f4" else 1e-12}
    with np.errstate(invalid="ignore"):
        differences = X[:, None].astype("f8") - C
        distances = np.sum(differences**2, axis=-1)
        np.testing.assert_allclose(ft.jit(nearest)(C, X), np.sum(np.min(distances, axis=1)), **tolerance)
        if not odd:
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
