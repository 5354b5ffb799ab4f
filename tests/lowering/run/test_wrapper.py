"""The wrapper of an executable: what it keeps alive between steps."""

import tracemalloc

import numpy as np
import pytest

import functrans as ft
from functrans.lowering.run.wrapper import tidy
from functrans.runtime.config import config

LONG = np.linspace(0.0, 1.0, 200_000)


def test_arguments_are_copied_only_if_necessary():
    kept = np.arange(6.0)
    assert tidy(kept, kept.dtype) is kept
    bytes_ = np.zeros(49, np.uint8)
    misaligned = np.ndarray((6,), float, bytes_, 1)
    for a in (
        kept[::2],
        kept.reshape(2, 3).T,
        kept.astype("f4"),
        kept.astype(">f8"),
        misaligned,
        kept.tolist(),
    ):
        b = tidy(a, kept.dtype)
        assert b.flags.c_contiguous
        assert b.flags.aligned
        assert not np.shares_memory(b, a)
        np.testing.assert_array_equal(b, a)


def six_calls(x):
    for _ in range(6):
        x = ft.pure_callback(lambda a: np.asarray(a) + 1, ft.ShapeDtypeStruct(x.shape, x.dtype), x) * 1.5
    return x


def test_what_a_step_returns_goes_after_its_last_reader():
    with config.patch(checked=False):
        f = ft.jit(six_calls)
        f(LONG)
        tracemalloc.start()
        result = f(LONG)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    expected = LONG
    for _ in range(6):
        expected = (expected + 1) * 1.5
    np.testing.assert_allclose(result, expected, rtol=1e-14)
    assert peak <= 5 * LONG.nbytes


def test_host_results_stay_until_the_last_kernel_that_may_fail():
    calls = []

    def host(a):
        calls.append(a)
        return np.asarray(a) + 1

    @ft.jit
    def f(x, i):
        declared = ft.ShapeDtypeStruct(x.shape, x.dtype)
        first = ft.io_callback(host, declared, x)
        second = ft.io_callback(host, declared, first * 2.0)
        return second.at[i].get(mode="promise_in_bounds") + second[i] + second

    np.testing.assert_allclose(f(LONG, 3), 2 * ((LONG + 1) * 2 + 1)[3] + (LONG + 1) * 2 + 1)
    calls.clear()
    with pytest.raises(IndexError, match="200000"):
        f(LONG, len(LONG))
    assert len(calls) == 2
