"""Nests over pairs that visit half of them: which do, and that their sums are those of NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops.from_jaxpr import pair_nests, pairs, row_sums
from functrans.lowering.loops.passes import parallel

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Small nests, in small blocks, divided among threads if there are two."""
    for module, name, value in (
        (pairs, "LEAST", 2),
        (pair_nests, "ROWS", 4),
        (row_sums, "FEW", 3),
        (parallel, "LEAST", 64),
        (parallel, "LEAST_CHUNK", 8),
        (parallel, "LITTLE", 0),
    ):
        monkeypatch.setattr(module, name, value)


def points(n, width=3, dtype=float):
    return RNG.normal(size=(n, width)).astype(dtype)


def gaps(x):
    return x[:, None, :] - x[None, :, :]


def squares(x):
    return (gaps(x) ** 2).sum(-1)


def other(xp, n):
    """Where two different points meet."""
    return xp.arange(n)[:, None] != xp.arange(n)[None, :]


def inverse(x, xp):
    return 1.0 / xp.where(other(xp, len(x)), squares(x), 1.0)


# What is summed is symmetric or antisymmetric in the first two axes.
SYMMETRIC = {
    "gaussian": lambda x, xp: xp.exp(-squares(x)).sum(),
    "soft coulomb": lambda x, xp: (1.0 / xp.sqrt(squares(x) + 0.5)).sum(),
    "lennard-jones": lambda x, xp: xp.where(
        other(xp, len(x)), inverse(x, xp) ** 6 - inverse(x, xp) ** 3, 0.0
    ).sum(),
    "densities": lambda x, xp: xp.exp(-squares(x)).sum(1),
    "densities of columns": lambda x, xp: xp.exp(-squares(x)).sum(0),
    "forces": lambda x, xp: (gaps(x) / (1.0 + squares(x))[:, :, None]).sum(1),
    "forces of columns": lambda x, xp: (gaps(x) / (1.0 + squares(x))[:, :, None]).sum(0),
    "masked forces": lambda x, xp: xp.where(
        other(xp, len(x))[:, :, None], gaps(x) * inverse(x, xp)[:, :, None], 0.0
    ).sum(1),
    "mean field": lambda x, xp: xp.sin(x[None, :, 0] - x[:, None, 0]).mean(1),
    "nearest": lambda x, xp: xp.where(other(xp, len(x)), squares(x), xp.inf).min(1),
    "farthest": lambda x, xp: squares(x).max(0),
    "width": lambda x, xp: squares(x).max(),
    "close pairs": lambda x, xp: (squares(x) < 1.0).sum(),
    "neighbours": lambda x, xp: ((squares(x) < 1.0) & other(xp, len(x))).sum(1),
    "lonely": lambda x, xp: ((squares(x) > 1.0) | ~other(xp, len(x))).all(1),
    "products": lambda x, xp: xp.maximum(x[:, None, 0] * x[None, :, 0], 0.1).sum(1),
    "sum of forces": lambda x, xp: (gaps(x) ** 3).sum((0, 1)),
    "scaled": lambda x, xp: xp.exp(-((x[:, None] / 3.0 - x[None, :] / 3.0) ** 2).sum(-1)).sum(),
    "several": lambda x, xp: (
        (gaps(x) * xp.exp(-squares(x))[:, :, None]).sum(1),
        xp.exp(-squares(x)).sum(),
        xp.exp(-squares(x)).max(1),
    ),
}
OTHERS = {
    "two sets": lambda x, xp: xp.exp(-((x[:, None] - 2.0 * x[None, :]) ** 2).sum(-1)).sum(),
    "upper triangle": lambda x, xp: xp.triu(xp.exp(-squares(x)), 1).sum(),
    "exponentials": lambda x, xp: xp.exp(gaps(x)).sum(1),
    "weighted": lambda x, xp: (xp.exp(-squares(x)) * x[:, :1]).sum(1),
    "largest force": lambda x, xp: gaps(x).max(1),
    "first of each": lambda x, xp: xp.exp(-squares(x)).prod(1),
    "kept": lambda x, xp: (xp.exp(-squares(x)), xp.exp(-squares(x)).sum(1)),
}


def blocks(f, *args):
    """Whether a function's kernels visit half of the pairs."""
    with ft.config.patch(without={"mirrored_pairs"}):
        without = ft.jit(lambda *args: f(*args)).lower(*args).as_text("python")
    return ft.jit(lambda *args: f(*args)).lower(*args).as_text("python") != without


def agree(f, x, threads=1, **tolerances):
    with ft.config.patch(num_threads=threads):
        results = ft.jit(lambda x: f(x, fnp))(x)
    expected = f(np.asarray(x), np)
    if not isinstance(expected, tuple):
        results, expected = (results,), (expected,)
    for a, b in zip(results, expected, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, **{"rtol": 1e-12, "atol": 1e-12, **tolerances})


@pytest.mark.parametrize("name", SYMMETRIC)
def test_half_of_the_pairs(name):
    f = SYMMETRIC[name]
    assert blocks(lambda x: f(x, fnp), points(11))
    for threads in (1, 2):
        agree(f, points(11), threads)
    with ft.config.patch(backend="python"):
        agree(f, points(11))


@pytest.mark.parametrize("name", OTHERS)
def test_all_pairs(name):
    assert not blocks(lambda x: OTHERS[name](x, fnp), points(11))
    agree(OTHERS[name], points(11))


@given(
    st.sampled_from(list(SYMMETRIC)),
    st.integers(0, 21),
    st.integers(1, 5),
    st.sampled_from([1, 2]),
    st.sampled_from(["f8", "f4"]),
)
@settings(max_examples=60, deadline=None)
def test_any_number_of_points(name, n, width, threads, dtype):
    if n == 0 and name in ("nearest", "farthest", "width", "mean field", "several"):
        n = 1
    x = np.random.default_rng(n).normal(size=(n, width)).astype(dtype)
    tolerance = 1e-3 if dtype == "f4" else 1e-11
    agree(SYMMETRIC[name], x, threads, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["gaussian", "soft coulomb", "lennard-jones"])
@pytest.mark.parametrize("threads", [1, 2])
def test_derivatives(name, threads):
    def energy(x):
        return SYMMETRIC[name](x, fnp)

    x, v = points(9) * 2.0, points(9)
    assert blocks(ft.value_and_grad(energy), x)
    with ft.config.patch(num_threads=threads):
        value, gradient = ft.jit(ft.value_and_grad(energy))(x)
        product = ft.jit(lambda x, v: ft.jvp(ft.grad(energy), (x,), (v,))[1])(x, v)
    with ft.config.patch(strict=True):
        expected = ft.jit(ft.grad(energy))(x)
    np.testing.assert_allclose(value, SYMMETRIC[name](x, np), rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
    step = 1e-5
    slope = (ft.grad(energy)(x + step * v) - ft.grad(energy)(x - step * v)) / (2 * step)
    np.testing.assert_allclose(product, slope, rtol=1e-4, atol=1e-6 * np.abs(slope).max())


def test_a_result_does_not_depend_on_which_thread_computes_what():
    f = ft.jit(ft.grad(lambda x: SYMMETRIC["gaussian"](x, fnp)))
    x = points(67)
    with ft.config.patch(num_threads=2):
        first = np.asarray(f(x))
        assert all(np.array_equal(first, f(x)) for _ in range(20))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("row", [0, 5, 10])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_not_finite(name, bad, row):
    x = points(11)
    x[row, 1] = bad
    agree(SYMMETRIC[name], x)


def differences(x):
    return x[:, None] - x[None, :]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x, xp: (1.0 / differences(x)).sum(1),
        lambda x, xp: xp.arctan(1.0 / differences(x)).sum(1),
        lambda x, xp: xp.tanh(differences(x) ** -3).sum(0),
        lambda x, xp: xp.where(other(xp, len(x)), xp.arctan(1.0 / differences(x)), 0.0).sum(1),
        lambda x, xp: xp.arctan(1.0 / (differences(x) * differences(x**2 - x))).sum(1),
        lambda x, xp: xp.sqrt(0.0 * differences(x) * differences(x - 1.0 / x)).sum(1),
        lambda x, xp: xp.copysign(1.0, differences(x)).sum(1),
        lambda x, xp: xp.copysign(1.0, xp.maximum(differences(x) * differences(1.0 / x), 0.0)).sum(1),
        lambda x, xp: (differences(x) / xp.abs(differences(x) ** 3)).sum(1),
        lambda x, xp: (1.0 / differences(x) ** 2).sum(1),
    ],
)
def test_points_in_one_place(f):
    """Their difference is 0.0 both ways: what is infinite there has one sign."""
    x = np.array([1.0, 2.0, 2.0, 3.0, -1.0, 5.0, 0.5, 7.5, 2.0, -1.0, 9.0])
    for threads in (1, 2):
        agree(f, x, threads)


def test_which_functions_of_differences_visit_half_of_the_pairs():
    x = points(11)[:, 0]
    assert blocks(lambda x: (differences(x) / (fnp.abs(differences(x)) ** 3 + 0.1)).sum(1), x)
    assert blocks(lambda x: (1.0 / (0.5 + differences(x) * differences(x**2))).sum(1), x)
    assert not blocks(lambda x: (1.0 / differences(x)).sum(1), x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["u1", "u4", "u8", "i1", "i8"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, xp: xp.abs(differences(x)).sum(1),
        lambda x, xp: xp.abs(differences(x)).astype(float).sum(0),
        lambda x, xp: xp.abs(differences(x)).max(1),
        lambda x, xp: xp.sign(differences(x)).sum(1),
        lambda x, xp: (differences(x) // 3).sum(1),
        lambda x, xp: (differences(x) ** 2).sum(1),
        lambda x, xp: (differences(x) ** 3).sum(1),
        lambda x, xp: (differences(x) * xp.sign(differences(x))).sum(1),
    ],
)
def test_integers_wrap_around(f, dtype):
    x = np.array([3, 250, 7, 7, 90, 128, 2, 3, 127, 200, 0, 255], np.uint8).astype(dtype)
    agree(f, x)


def test_batches_and_points_of_one_function_each():
    def kernel(a, b):
        return fnp.exp(-((a - b) ** 2).sum())

    def energy(x):
        return ft.vmap(lambda a: ft.vmap(lambda b: kernel(a, b))(x))(x).sum()

    batch = RNG.normal(size=(4, 10, 2))
    assert blocks(energy, batch[0])
    assert blocks(ft.vmap(energy), batch)
    expected = [np.exp(-squares(x)).sum() for x in batch]
    np.testing.assert_allclose(ft.jit(ft.vmap(energy))(batch), expected, rtol=1e-13)
    slopes = ft.jit(ft.vmap(ft.grad(energy)))(batch)
    weights = [np.exp(-squares(x))[:, :, None] for x in batch]
    by_hand = [-4.0 * (gaps(x) * w).sum(1) for x, w in zip(batch, weights)]
    np.testing.assert_allclose(slopes, by_hand, rtol=1e-11, atol=1e-13)


def test_forces_in_a_loop():
    def leap(state, _):
        x, v = state
        v = v + 0.01 * SYMMETRIC["forces"](x, fnp)
        return (x + 0.01 * v, v), SYMMETRIC["gaussian"](x, fnp)

    def path(x):
        return lax.scan(leap, (x, 0.0 * x), None, length=5)

    x = points(9)
    assert blocks(path, x)
    (end, _), energies = ft.jit(path)(x)
    y, v = x, 0.0 * x
    for energy in energies:
        np.testing.assert_allclose(energy, SYMMETRIC["gaussian"](y, np), rtol=1e-12)
        v = v + 0.01 * SYMMETRIC["forces"](y, np)
        y = y + 0.01 * v
    np.testing.assert_allclose(end, y, rtol=1e-12, atol=1e-13)


def test_what_else_the_loop_over_points_computes():
    """It gets loops of its own; what depends on sums of rows is computed when these are complete."""

    def f(x):
        density = fnp.exp(-squares(x)).sum(1)
        return (x**2).sum(), density * x[:, 0], fnp.log(density).sum(), fnp.tanh(x)

    x = points(13)
    assert blocks(f, x)
    density = np.exp(-squares(x)).sum(1)
    expected = (x**2).sum(), density * x[:, 0], np.log(density).sum(), np.tanh(x)
    for threads in (1, 2):
        with ft.config.patch(num_threads=threads):
            for a, b in zip(ft.jit(f)(x), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_sums_in_single_precision_are_as_precise_as_in_rows():
    x = RNG.uniform(size=(3000, 1)).astype(np.float32)
    f = SYMMETRIC["densities"]
    exact = np.exp(-(gaps(x.astype(float)) ** 2).sum(-1)).sum(1)
    np.testing.assert_allclose(ft.jit(lambda x: f(x, fnp))(x), exact, rtol=1e-6)


def test_sums_of_many_pairs_are_precise():
    x = RNG.uniform(size=(2000, 2))
    energy = ft.jit(lambda x: SYMMETRIC["gaussian"](x, fnp))(x)
    exact = np.exp(-squares(x).astype(np.longdouble)).sum()
    assert abs(energy - exact) < 4e-15 * exact


def test_strict_sums_keep_their_order():
    with ft.config.patch(strict=True):
        assert not blocks(lambda x: SYMMETRIC["forces"](x, fnp), points(11))
