"""Fourier transforms by ducc0, where it is installed, beside NumPy's; and by SciPy where it is not."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.fft as scipy_fft
from functrans import lax
from functrans.primitives import fft

CASES = [
    ("fft2", (6, 10), complex),
    ("ifft2", (3, 5, 4), complex),
    ("fftn", (2, 3, 7), complex),
    ("fft", (0, 4), complex),
    ("fft", (9,), float),
    ("rfft2", (4, 6, 5), float),
    ("rfftn", (3, 8), float),
    ("irfft2", (2, 5, 4), complex),
    ("irfftn", (4, 3), complex),
]


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("name", "shape", "kind"), CASES)
@pytest.mark.parametrize("by_ducc0", [True, False])
def test_is_what_numpy_computes(name, shape, kind, dtype, norm, by_ducc0, monkeypatch):
    if by_ducc0:
        pytest.importorskip("ducc0")
    monkeypatch.setattr(fft, "has_ducc0", lambda: by_ducc0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)
    x = x.astype(dtype if kind is float else np.result_type(dtype, "c8"))
    f = getattr(fnp.fft, name)
    expected = getattr(np.fft, name)(x, norm=norm)
    compiled = ft.jit(lambda x: f(x, norm=norm))(x)
    assert compiled.dtype == expected.dtype
    np.testing.assert_allclose(
        compiled, expected, rtol=1e-5 if dtype == "f4" else 1e-13, atol=1e-5 if dtype == "f4" else 1e-13
    )
    assert np.array_equal(f(x, norm=norm), compiled)
    assert np.array_equal(f(np.asfortranarray(x), norm=norm), compiled)


def test_ducc0_runs_where_it_is_installed(monkeypatch):
    ducc0 = pytest.importorskip("ducc0")
    calls = []
    for name in ("c2c", "r2c", "c2r"):
        known = getattr(ducc0.fft, name)
        monkeypatch.setattr(
            ducc0.fft, name, lambda *a, f=known, n=name, **k: (calls.append(n), f(*a, **k))[1]
        )
    x = np.ones((4, 6))
    fnp.fft.irfft2(fnp.fft.rfft2(x))
    fnp.fft.ifft2(fnp.fft.fft2(x + 1j))
    assert calls == ["r2c", "c2r", "c2c", "c2c"]


@pytest.mark.parametrize("backend", ["llvm", "python"])
@pytest.mark.parametrize(
    ("name", "shape", "kind"), [*CASES, ("dct", (4, 6), float), ("idstn", (3, 5), complex)]
)
@pytest.mark.parametrize("by_ducc0", [True, False])
def test_in_loops_results_are_in_the_memory_of_the_kernel(name, shape, kind, by_ducc0, backend, monkeypatch):
    """Those of each iteration, and an operand that the loop carries is not overwritten by its transform."""
    if by_ducc0:
        pytest.importorskip("ducc0")
    monkeypatch.setattr(fft, "has_ducc0", lambda: by_ducc0)
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)
    f = getattr(fnp.fft if hasattr(fnp.fft, name) else scipy_fft, name)

    def loop(x):
        return lax.scan(lambda c, _: (c * 0.5 + 1.0, (f(c), c)), x, None, length=3)

    with ft.config.patch(backend=backend):
        last, (transforms, carries) = ft.jit(loop)(x)
    for row, carry in zip(transforms, carries, strict=True):
        np.testing.assert_array_equal(carry, x)
        np.testing.assert_array_equal(row, f(x))
        x = x * 0.5 + 1.0
    np.testing.assert_array_equal(last, x)
