"""Floats out of an integer's range: one result, whoever casts. The oracle computes with Python's integers."""

import math
import platform
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.arrays import casts
from functrans.runtime.config import config

INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
POINTS = [
    *(
        math.nan,
        math.inf,
        -math.inf,
        0.5,
        -0.0,
        -0.5,
        -1.0,
        -1.5,
        254.9,
        300.0,
        -129.0,
        70000.0,
        2.5e9,
        1e300,
    ),
    *[
        sign * 2.0**n + shift
        for n in (7, 8, 15, 16, 31, 32, 63, 64, 65)
        for sign in (1, -1)
        for shift in (0, 1)
    ],
    *[sign * math.nextafter(2.0**n, 0) for n in (31, 32, 63, 64) for sign in (1, -1)],
]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def truncated(x, bits):
    """The integer part of a float, or the smallest signed integer."""
    fits = math.isfinite(x) and -(2 ** (bits - 1)) <= math.trunc(x) < 2 ** (bits - 1)
    return math.trunc(x) if fits else -(2 ** (bits - 1))


def expected(x, dtype):
    """The bits that stay of the truncated float."""
    if dtype == np.uint64 and x >= 2.0**63:
        n = truncated(x - 2.0**63, 64) + 2**63
    else:
        n = truncated(x, 64 if dtype.itemsize == 8 or dtype == np.uint32 else 32)
    bits = 8 * dtype.itemsize
    n %= 2**bits
    return n - 2**bits if dtype.kind == "i" and n >= 2 ** (bits - 1) else n


def points(source):
    """The points in a dtype, and as Python's floats."""
    if source == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = np.array(POINTS)
    if source.startswith("complex"):
        z = np.zeros(x.shape, source)
        z.real, z.imag = x, 1.0
        return z, [float(v) for v in z.real]
    x = x.astype(getattr(ft, source) if source == "bfloat16" else source)
    return x, [float(v) for v in x]


WAYS = {
    "method": lambda x, t: x.astype(t),
    "astype": fnp.astype,
    "asarray": fnp.asarray,
    "convert_element_type": lax.convert_element_type,
    "strided": lambda x, t: fnp.repeat(x, 2)[::2].astype(t),
    "scalars": lambda x, t: fnp.stack([v.astype(t) for v in x]),
    "vmap": lambda x, t: ft.vmap(lambda v: v.astype(t))(x),
    "scan": lambda x, t: lax.scan(lambda c, v: (c, v.astype(t)), 0, x)[1],
}


@pytest.mark.parametrize("source", FLOATS)
def test_every_way_to_cast(source):
    x, numbers = points(source)
    x = fnp.asarray(x)
    want = [np.array([expected(v, target) for v in numbers], target) for target in INTEGERS]

    def run(x):
        return {name: [way(x, target) for target in INTEGERS] for name, way in WAYS.items()}

    few = ft.jit(lambda: [fnp.asarray(x).astype(target) for target in INTEGERS])
    for how, found in (("eagerly", run(x)), ("compiled", ft.jit(run)(x)), ("of constants", {"jit": few()})):
        for name, casts_ in found.items():
            for got, w in zip(casts_, want):
                assert got.dtype == w.dtype
                np.testing.assert_array_equal(got, w, err_msg=f"{name} {how}: {source} to {w.dtype}")


def test_literals_in_a_kernel():
    def run(one):
        return [[fnp.where(one > 0, fnp.asarray(v).astype(t), t.type(0)) for t in INTEGERS] for v in POINTS]

    for v, found in zip(POINTS, ft.jit(run)(np.int8(1))):
        assert [int(n) for n in found] == [expected(v, t) for t in INTEGERS], v


@pytest.mark.parametrize("source", FLOATS)
def test_booleans(source):
    x, numbers = points(source)
    want = [v != 0 or source.startswith("complex") for v in numbers]
    for found in (x.astype(bool), fnp.asarray(x).astype(bool), ft.jit(lambda x: x.astype(bool))(x)):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("source", FLOATS[:4])
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_processors_whose_casts_differ(source, target):
    """Where NumPy's casts are others, the definition is computed."""
    x, numbers = points(source)
    want = np.array([expected(v, target) for v in numbers], target)
    np.testing.assert_array_equal(casts.by_definition(x, target), want)
    assert all(casts.by_definition(v, target) == w for v, w in zip(x, want))


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_python_form_of_kernels(target):
    with config.patch(backend="python"):
        found = ft.jit(lambda x: x.astype(target))(np.array(POINTS))
    np.testing.assert_array_equal(found, [expected(v, target) for v in POINTS])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="NumPy's casts are those of x86-64")
@pytest.mark.parametrize("source", FLOATS[:1] + FLOATS[2:4])
def test_numpy_on_x86_64(source):
    """So its own loops are used there."""
    for target in INTEGERS:
        assert casts.numpy_agrees(np.dtype(source), target) == (target != np.uint32)
