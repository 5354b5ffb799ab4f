"""The memory of a compiled function, beside what tracemalloc sees."""

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.fft

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.runtime.libraries import has_ducc0

N = 40_000
X = np.ones(N)


def analysed(f, *args, **options):
    return ft.jit(f, **options).lower(*args).compile().memory_analysis()


def doubled(x):
    return np.asarray(x) * 2.0


def seen(f, *args):
    """The most that a call allocates besides its result."""
    gc.collect()
    tracemalloc.start()
    try:
        out = f(*args)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - np.asarray(out).nbytes


def sorted_twice(x):
    """Scratch memory: what is sorted is stored."""
    return fnp.sum(fnp.sort(fnp.sin(x)) * fnp.sort(fnp.cos(x)))


def between(x):
    """A value between a kernel and a host call, and its result; SciPy's function has memory of its own."""
    return fnp.sum(fnp.abs(fnp.fft.fft(fnp.sin(x))))


def smoothed(x):
    def step(_, u):
        return (u + fnp.roll(u, 1)) / 2.0

    return fnp.sum(lax.fori_loop(0, 5, step, x))


@pytest.mark.parametrize("f", [sorted_twice, between, smoothed])
def test_temporary_memory_is_what_tracemalloc_sees(f):
    with ft.config.patch(checked=False, num_threads=1):
        fnp.fft.fft(X)  # imports the library that transforms
        compiled = ft.jit(f).lower(X).compile()
        expected = compiled.memory_analysis().temp_size_in_bytes
        assert expected >= X.nbytes
        on_host = seen(scipy.fft.fftn, X) if f is between and not has_ducc0() else 0
        assert seen(compiled, X) == pytest.approx(expected + on_host, rel=0.05, abs=20_000)


def test_values_between_steps_end_with_their_last_use():
    """Three host calls one after the other: two arrays at a time, not four."""

    def f(x):
        for _ in range(3):
            x = ft.pure_callback(doubled, x, x)
        return fnp.sum(x)

    with ft.config.patch(checked=False):
        assert analysed(f, X).temp_size_in_bytes == 2 * X.nbytes


def test_rows_of_16_are_looked_up_again():
    """The gradient reads the rows that the products read: they were stored, twice 320 kB."""

    def error(ab, i, k, y):
        return fnp.sum((y - fnp.sum(ab[0][i] * ab[1][k], axis=1)) ** 2)

    arrays = (np.ones((100, 16)), np.full((80, 16), 2.0))
    data = np.arange(2500) % 100, np.arange(2500) % 80, np.zeros(2500)
    assert analysed(ft.grad(error), arrays, *data).temp_size_in_bytes <= 3 * data[2].nbytes
    left, right = ft.jit(ft.grad(error))(arrays, *data)
    np.testing.assert_allclose(left, np.full((100, 16), 25 * 2 * 32 * 2.0))
    np.testing.assert_allclose(np.sum(right), 2500 * 16 * 2 * 32 * 1.0)


def test_arguments_results_and_donated_memory():
    memory = analysed(lambda x, y: (x + 1.0, fnp.sum(y)), X, np.ones(3, np.float32))
    assert memory.argument_size_in_bytes == X.nbytes + 12
    assert memory.output_size_in_bytes == X.nbytes + 4
    assert memory.alias_size_in_bytes == memory.temp_size_in_bytes == 0
    assert analysed(lambda x: x + 1.0, X, donate_argnums=0).alias_size_in_bytes == X.nbytes
    assert analysed(lambda x: x, X, donate_argnums=0).alias_size_in_bytes == X.nbytes


def test_code_has_a_size():
    small = analysed(lambda x: x + 1.0, X).generated_code_size_in_bytes
    large = analysed(lambda x: fnp.sort(x) @ fnp.cumsum(fnp.sin(x)), X).generated_code_size_in_bytes
    assert 0 < small < large
    with ft.config.patch(backend="python"):
        assert analysed(lambda x: x + 2.0, X).generated_code_size_in_bytes == 0
