"""dot_general and the matmul family: every layout against einsum and NumPy; kernels by loops and by BLAS."""

import itertools
import string

import numpy as np
import pytest

from functrans.core.aval import Aval
from functrans.errors import DtypeError, ShapeError
from functrans.primitives.products.dot import dot_general_p
from functrans.primitives.products.matmul import contract, matmul, matvec, vecdot, vecmat


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape) if np.dtype(dtype).kind in "iub" else rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def by_einsum(x, y, dimension_numbers):
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    letters = iter(string.ascii_letters)
    xs, ys = [""] * x.ndim, [""] * y.ndim
    for d, e in (*zip(x_batch, y_batch), *zip(x_contract, y_contract)):
        xs[d] = ys[e] = next(letters)
    batch = [xs[d] for d in x_batch]
    xs, ys = [a or next(letters) for a in xs], [a or next(letters) for a in ys]
    shared = set(xs) & set(ys)
    out = batch + [a for a in xs if a not in shared] + [a for a in ys if a not in shared]
    return np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)


SMALL = [
    ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ((4, 3), (5, 4), (((0,), (1,)), ((), ()))),
    ((4,), (4,), (((0,), (0,)), ((), ()))),
    ((4,), (3, 4), (((0,), (1,)), ((), ()))),
    ((3, 4), (4,), (((1,), (0,)), ((), ()))),
    ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ((3, 2, 4), (4, 5, 2), (((2,), (0,)), ((1,), (2,)))),
    ((2, 3, 4, 5), (5, 3, 6, 2), (((3, 1), (0, 1)), ((0,), (3,)))),
    ((2, 3), (4,), (((), ()), ((), ()))),
    ((2, 3), (2, 3), (((), ()), ((0, 1), (0, 1)))),
    ((2, 3), (2, 3), (((1,), (1,)), ((0,), (0,)))),
    ((3, 0), (0, 5), (((1,), (0,)), ((), ()))),
    ((0, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ((), (3,), (((), ()), ((), ()))),
    ((1, 1), (1, 1), (((1,), (0,)), ((), ()))),
]
# Large enough for BLAS in a kernel: matrices both ways round, vectors, batch axes anywhere, packed axes.
LARGE = [
    ((13, 14), (14, 15), (((1,), (0,)), ((), ()))),
    ((14, 13), (14, 15), (((0,), (0,)), ((), ()))),
    ((13, 14), (15, 14), (((1,), (1,)), ((), ()))),
    ((14, 13), (15, 14), (((0,), (1,)), ((), ()))),
    ((40, 50), (50,), (((1,), (0,)), ((), ()))),
    ((50, 40), (50,), (((0,), (0,)), ((), ()))),
    ((50,), (40, 50), (((0,), (1,)), ((), ()))),
    ((50,), (50, 40), (((0,), (0,)), ((), ()))),
    ((99,), (99,), (((0,), (0,)), ((), ()))),
    ((3, 99), (99, 3), (((1,), (0,)), ((0,), (1,)))),
    ((3, 12, 13), (3, 13, 14), (((2,), (1,)), ((0,), (0,)))),
    ((12, 3, 13), (13, 14, 3), (((2,), (0,)), ((1,), (2,)))),
    ((12, 13, 3), (14, 3, 13), (((1,), (2,)), ((2,), (1,)))),
    ((4, 5, 6, 7), (6, 4, 8), (((0, 2), (1, 0)), ((), ()))),
    ((6, 7, 5, 4), (7, 4, 6, 2), (((3, 0), (1, 2)), ((1,), (0,)))),
    ((1, 600), (600, 1), (((1,), (0,)), ((), ()))),
    ((600, 1), (1, 3), (((1,), (0,)), ((), ()))),
    ((5, 6, 1), (5, 6, 30), (((0, 1), (0, 1)), ((), ()))),
    ((30, 1, 30), (30, 30), (((0,), (0,)), ((), ()))),
    ((2, 2, 30, 40), (2, 40, 2), (((3,), (1,)), ((0, 1), (2, 0)))),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int32, bool])
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_small_products(check, case, dtype):
    x, y = values(case[0], dtype), values(case[1], dtype, 1)
    linear = [(0,), (1,)] if np.dtype(dtype).kind in "fc" else ()
    out = check(dot_general_p, x, y, linear=linear, dimension_numbers=case[2])
    np.testing.assert_allclose(out, by_einsum(x, y, case[2]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex64, np.complex128, np.int64])
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large_products(check, case, dtype):
    x, y = values(case[0], dtype), values(case[1], dtype, 1)
    linear = [(0,), (1,)] if np.dtype(dtype).kind in "fc" else ()
    out = check(dot_general_p, x, y, linear=linear, jvp=False, backends=("llvm",), dimension_numbers=case[2])
    np.testing.assert_allclose(out, by_einsum(x, y, case[2]), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("case", SMALL + LARGE, ids=str)
def test_strided_and_reversed_operands(case):
    x, y = (
        np.asfortranarray(values(s, float, i))[..., ::-1] if s else np.float64(2)
        for i, s in enumerate(case[:2])
    )
    x, y = np.asarray(x), np.asarray(y)
    out = dot_general_p.bind(x, y, dimension_numbers=case[2])
    np.testing.assert_allclose(out, by_einsum(x, y, case[2]), rtol=1e-10, atol=1e-10)


def test_nan_and_infinity(check):
    x = np.array([[np.nan, 1.0], [np.inf, 0.0]])
    check(dot_general_p, x, x, jvp=False, dimension_numbers=(((1,), (0,)), ((), ())))


def test_operands_that_do_not_fit():
    f8 = np.dtype(float)
    with pytest.raises(ShapeError, match=r"shapes \(2, 3\) and \(4, 5\) differ along the contracted axes"):
        dot_general_p.abstract(Aval((2, 3), f8), Aval((4, 5), f8), dimension_numbers=(((1,), (0,)), ((), ())))
    with pytest.raises(DtypeError):
        dot_general_p.abstract(
            Aval((3,), f8), Aval((3,), np.dtype("f4")), dimension_numbers=(((0,), (0,)), ((), ()))
        )


SHAPES = [
    (3,),
    (4, 3),
    (3, 4),
    (3, 3),
    (2, 4, 3),
    (2, 3, 4),
    (5, 1, 3, 3),
    (1, 3, 3),
    (2, 3, 3),
    (),
    (0, 3),
    (3, 0),
]


def by_matmul(name, x, y):
    """NumPy's `matvec` or `vecmat`, for releases before 2.2."""
    vector, matrix = (y, x) if name == "matvec" else (x, y)
    if vector.ndim < 1 or matrix.ndim < 2:
        raise ValueError("too few axes")
    if name == "matvec":
        return (x @ y[..., None])[..., 0]
    x = np.conj(x) if x.dtype.kind == "c" else x  # of booleans it has eight bits
    return (x[..., None, :] @ y)[..., 0, :]


@pytest.mark.parametrize("function", [matmul, vecdot, matvec, vecmat], ids=lambda f: f.__name__)
def test_matmul_family(function):
    name = function.__name__
    reference = getattr(np, name, lambda x, y: by_matmul(name, x, y))
    for x_shape, y_shape in itertools.product(SHAPES, SHAPES):
        for dtype in (np.float64, np.complex128, np.int64, np.float32, bool):
            x, y = values(x_shape, dtype), values(y_shape, dtype, 1)
            try:
                expected = reference(x, y)
            except ValueError:
                with pytest.raises(ShapeError, match=function.__name__):
                    function(x, y)
                continue
            got = function(x, y)
            assert (got.shape, got.dtype) == (np.shape(expected), expected.dtype)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_matmul_promotes():
    assert matmul(np.ones((2, 2), np.float32), np.ones((2, 2), np.int64)).dtype == np.float64


def test_contract_without_sums_multiplies():
    x, y = values((2, 3), float), values((4, 2), float, 1)
    got = contract(x, ("i", "j"), y, ("k", "i"), ("j", "i", "k"))
    np.testing.assert_allclose(got, np.einsum("ij,ki->jik", x, y))
