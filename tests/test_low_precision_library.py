"""float16 and bfloat16 in the rest of the library, in other libraries, and in all functions of NumPy."""

import importlib.util
import itertools
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, nn, random
from functrans.core import (
    finfo,
)

HAS_BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None
needs_bfloat16 = pytest.mark.skipif(not HAS_BFLOAT16, reason="ml_dtypes is not installed")
LOW = ["float16", pytest.param("bfloat16", marks=needs_bfloat16)]
both = pytest.mark.parametrize("name", LOW)


def low(name):
    return np.dtype(getattr(ft, name))


def same(got, expected):
    """Equal values, NaN equal to NaN, which NumPy's own assertions do not see in bfloat16."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    wide = got.dtype if got.dtype.kind in "biuc" else float
    np.testing.assert_array_equal(got.astype(wide), expected.astype(wide))


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


ACTIVATIONS = (
    "relu gelu softmax log_softmax sigmoid silu softplus elu leaky_relu mish standardize logsumexp glu"
)


@both
def test_activations(name):
    x = fnp.asarray(np.linspace(-3, 3, 8).astype(low(name)))
    wide = np.asarray(x).astype(float)
    for f in [getattr(nn, n) for n in ACTIVATIONS.split()]:
        assert f(x).dtype == ft.make_jaxpr(f)(x).out_avals[0].dtype == x.dtype, f
        np.testing.assert_allclose(
            np.asarray(f(x)).astype(float), f(wide), rtol=0.03, atol=4 * float(finfo(x.dtype).eps)
        )


@both
def test_random_numbers(name):
    dtype, key = low(name), random.key(0)
    with ft.disable_jit():
        draws = [random.normal(key, (4000,), dtype), random.uniform(key, (4000,), dtype)]
        draws.append(random.gumbel(key, (4000,), dtype))
    for x, mean in zip(draws, (0.0, 0.5, 0.5772)):
        assert x.dtype == dtype
        assert abs(np.asarray(x).astype(float).mean() - mean) < 0.06
    assert np.abs(np.asarray(draws[0]).astype(float)).max() > 3  # not limited by the bits of two bytes
    same(random.normal(key, (4000,), np.float32).astype(dtype), draws[0])
    assert (np.asarray(draws[1]) < 1).all()
    with ft.disable_jit():
        assert random.orthogonal(key, 3, dtype=dtype).dtype == dtype
        assert random.choice(key, draws[0], (3,)).dtype == random.permutation(key, draws[0]).dtype == dtype
        assert nn.initializers.he_normal()(key, (3, 4), dtype).dtype == dtype


@both
def test_arrays_outside(name):
    dtype = low(name)
    x = fnp.asarray(np.array([[1.5, -0.1]]).astype(dtype))
    assert np.asarray(x).dtype == dtype
    assert np.array(x, np.float32).tolist() == x.tolist() == [[1.5, float(dtype.type(-0.1))]]
    assert repr(x) == f"A{repr(np.asarray(x))[1:]}"
    assert (float(x[0, 0]), int(x[0, 0]), bool(x[0, 0])) == (1.5, 1, True)
    np.testing.assert_array_equal(fnp.from_dlpack(x), x)
    flat, back = ft.flatten_util.ravel_pytree({"a": x, "b": x[0]})
    assert flat.dtype == back(flat)["b"].dtype == dtype
    program = (
        "import sys, pickle; x = pickle.load(sys.stdin.buffer); print((2.0 * x).dtype, type(x).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(x), capture_output=True)
    assert done.stdout.decode().split() == [name, "Array"], done.stderr.decode()


@both
def test_numba_refuses(name):
    x = np.ones(3, low(name))

    @ft.njit
    def f(x):
        return x * 2

    for call in (f, ft.jit(f)):
        with pytest.raises(errors.DtypeError, match=rf"{name}.*astype\('float32'\)"):
            call(x)


# --- all functions of NumPy -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_result_dtypes_of_numpys_functions():
    x = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float16)
    unary = """
        sum prod mean var std max min ptp cumsum cumprod median average sort unique diff ediff1d gradient nan_to_num
        nansum nanmean nanvar nanmax nanmedian nancumsum round fix angle real imag conj abs sin exp sinc i0 unwrap ravel
        flip cov corrcoef frexp modf trapezoid histogram isnan signbit argmax any nonzero deg2rad spacing square
    """
    binary = """
        add divide power arctan2 hypot floor_divide float_power equal copysign nextafter heaviside logaddexp
        inner outer kron isclose union1d
    """
    others = [1.0, 2, 1j, np.float32(1), np.arange(3), np.arange(3, dtype=np.int8), np.ones(3, bool)]
    for name in unary.split():
        _same_types(getattr(fnp, name)(x), getattr(np, name)(x), name)
    for name, other in itertools.product(binary.split(), [x[::-1], *others]):
        try:
            expected = getattr(np, name)(x, other)
        except TypeError:
            continue
        _same_types(getattr(fnp, name)(x, other), expected, (name, other))


def _same_types(got, expected, what):
    got, expected = (y if isinstance(y, tuple) else (y,) for y in (got, expected))
    assert [np.asarray(y).dtype for y in got] == [np.asarray(y).dtype for y in expected], what
