"""What is read against its rows is read in strips of eight columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp


def text_of(f, *shapes):
    args = [np.ones(shape) for shape in shapes]
    with ft.config.patch(num_threads=1):
        return ft.jit(f).lower(*args).as_text("python")


def in_strips(text):
    return "in range(8)" in text


@pytest.mark.parametrize(
    ("f", "shapes", "expected"),
    [
        (lambda x: x.T * 2, [(64, 64)], True),
        (lambda x: x.T + x, [(64, 64)], True),
        (lambda x, y: x.T * y, [(100, 64), (64, 100)], True),
        (lambda x: fnp.swapaxes(x, 1, 2) * 2, [(3, 64, 70)], True),
        (lambda x: fnp.exp(x.T), [(64, 64)], False),  # the exponentials need longer loops
        (lambda x: x.T * 2, [(60, 60)], False),  # few elements
        (lambda x: x.T * 2, [(4000, 31)], False),  # a short axis
        (lambda x: fnp.swapaxes(x, 0, 1) * 2, [(64, 64, 64)], False),  # rows stay rows
        (lambda x: x[::-1, ::-1] * 2, [(64, 64)], False),
        (lambda x: x.T.sum(0), [(64, 64)], False),
        (lambda x: x[:, 0] * fnp.ones((64, 64)), [(64, 64)], False),  # one column
    ],
)
def test_which_loops(f, shapes, expected):
    assert in_strips(text_of(f, *shapes)) is expected
    with ft.config.patch(without={"strips"}):
        assert not in_strips(text_of(f, *shapes))


@settings(max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(30, 90), st.integers(30, 90)),
    axes=st.permutations(range(3)),
    dtype=st.sampled_from(["f4", "f8", "c8", "c16", "i2", "?"]),
    offset=st.integers(0, 3),
    reverse=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_values(shape, axes, dtype, offset, reverse, threads):
    rng = np.random.default_rng(sum(shape))
    x = (rng.normal(size=shape) * 9 + 1j * rng.normal(size=shape)).real.astype(dtype)
    y = rng.normal(size=tuple(shape[d] for d in axes)).astype("f4")

    def f(x, y, np):
        x = np.transpose(x[..., ::-1] if reverse else x, axes)
        # Two arrays that are read either way, one of them at places that move by some rows.
        return x[offset:] + y[: len(x) - offset], np.where(y > 0, x, -y)

    with ft.config.patch(num_threads=threads):
        found = ft.jit(lambda x, y: f(x, y, fnp))(x, y)
    for a, b in zip(found, f(x, y, np)):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [64, 67])
def test_an_array_that_is_overwritten(n):
    x, y = np.random.default_rng(0).normal(size=(2, n, n))
    kept = x.copy()
    found = ft.jit(lambda x, y: x + y.T, donate_argnums=0)(ft.donate(x.copy()), y)
    np.testing.assert_array_equal(found, kept + y.T)
    symmetric = ft.jit(lambda x: x + x.T, donate_argnums=0)(ft.donate(x.copy()))
    np.testing.assert_array_equal(symmetric, kept + kept.T)
    slopes = ft.jit(ft.grad(lambda x: ((x + x.T) ** 2 * y).sum()))(x)
    np.testing.assert_allclose(slopes, 2 * (x + x.T) * (y + y.T), rtol=1e-12, atol=1e-14)
