"""dtypes against NumPy: what arrays and Python scalars really give."""

import itertools

import numpy as np
import pytest

from functrans.core.dtypes import (
    SUPPORTED,
    canonical,
    check_supported,
    complex_dtype,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    promote,
    python_scalar_dtype,
    real_dtype,
    resolve_ufunc,
)
from functrans.errors import DtypeError, UnsupportedDtypeError

SCALARS = [True, 1, 1.0, 1j]
# What an operand is, as NumPy sees it and as functrans describes it.
OPERANDS = [(np.ones(2, dtype), (dtype, False)) for dtype in SUPPORTED]
OPERANDS += [(scalar, (python_scalar_dtype(type(scalar)), type(scalar) is not bool)) for scalar in SCALARS]
PAIRS = list(itertools.product(OPERANDS, OPERANDS))

UNARY = [np.sin, np.exp, np.sqrt, np.log1p, np.floor, np.negative, np.positive, np.abs, np.sign, np.invert]
UNARY += [
    np.isnan,
    np.logical_not,
    np.conjugate,
    np.reciprocal,
    np.square,
    np.cbrt,
    np.rint,
    np.modf,
    np.frexp,
]
BINARY = [
    np.add,
    np.subtract,
    np.multiply,
    np.true_divide,
    np.floor_divide,
    np.remainder,
    np.power,
    np.divmod,
]
BINARY += [np.logaddexp, np.arctan2, np.hypot, np.maximum, np.fmin, np.copysign, np.float_power]
BINARY += [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.gcd]
BINARY += [np.equal, np.not_equal, np.less, np.greater_equal, np.logical_and, np.logical_xor]


def numpy_dtypes(f, *args):
    """The dtypes of NumPy's results; None where it refuses."""
    try:
        with np.errstate(all="ignore"):
            results = f(*args)
    except TypeError:
        return None
    results = results if isinstance(results, tuple) else (results,)
    return tuple(r.dtype for r in results)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_binary_ufuncs_resolve_as_numpy_computes(ufunc):
    for (x, a), (y, b) in PAIRS:
        expected = numpy_dtypes(ufunc, x, y)
        if expected is None:
            with pytest.raises(DtypeError, match=f"{ufunc.__name__} does not take"):
                resolve_ufunc(ufunc, (a, b))
        else:
            inputs, outputs = resolve_ufunc(ufunc, (a, b))
            assert outputs == expected, (a, b)
            # The loop named is one that NumPy has, and takes these inputs as they are.
            assert numpy_dtypes(ufunc, *(np.ones(2, dtype) for dtype in inputs)) == expected, (a, b)


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda f: f.__name__)
def test_unary_ufuncs_resolve_as_numpy_computes(ufunc):
    for x, a in OPERANDS:
        expected = numpy_dtypes(ufunc, x)
        if expected is None:
            with pytest.raises(DtypeError, match=f"{ufunc.__name__} does not take"):
                resolve_ufunc(ufunc, (a,))
        else:
            assert resolve_ufunc(ufunc, (a,))[1] == expected, a


def test_promotion_of_pairs_is_that_of_an_array_operation():
    for (x, a), (y, b) in PAIRS:
        dtype, weak = promote([a, b])
        expected = np.concatenate([np.ravel(x), np.ravel(y)]).dtype if not (a[1] or b[1]) else None
        assert dtype == np.result_type(x, y)
        assert expected is None or dtype == expected
        assert weak == (a[1] and b[1])


def test_promotion_of_three_is_not_pairwise():
    for operands in itertools.product(OPERANDS[::3], OPERANDS, OPERANDS[1::3]):
        values, described = zip(*operands)
        assert promote(described)[0] == np.result_type(*values)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("int8", False), ("float64", True), "float64"),
        (("float32", False), ("complex128", True), "complex64"),
        (("bool", False), ("int64", True), "int64"),
        (("uint8", False), ("int64", True), "uint8"),
        (("int64", False), ("uint64", False), "float64"),
        (("float32", False), ("float64", True), "float32"),
    ],
)
def test_published_cases_of_nep_50(a, b, expected):
    operands = [(np.dtype(name), weak) for name, weak in (a, b)]
    assert promote(operands) == (np.dtype(expected), False)
    assert promote(operands[::-1]) == (np.dtype(expected), False)


def test_promotion_of_one_and_of_none():
    assert promote([(np.dtype("int16"), False)]) == (np.dtype("int16"), False)
    assert promote([(np.dtype("int64"), True)] * 3) == (np.dtype("int64"), True)
    with pytest.raises(DtypeError, match="no operands"):
        promote([])


def test_loops_of_mixed_dtypes():
    i8, u8 = (np.dtype("int64"), False), (np.dtype("uint64"), False)
    assert resolve_ufunc(np.less, (i8, u8)) == ((np.dtype("int64"), np.dtype("uint64")), (np.dtype("bool"),))
    inputs, outputs = resolve_ufunc(np.ldexp, ((np.dtype("int8"), False), (np.dtype("int8"), False)))
    assert inputs[0] == outputs[0] == np.float16
    assert inputs[1].kind == "i"


@pytest.mark.parametrize(
    ("ufunc", "names", "words"),
    [
        (np.bitwise_and, ["float64", "int64"], "integer or bool"),
        (np.floor, ["complex64"], "x.real"),
        (np.negative, ["bool"], "astype\\(int\\)"),
        (np.left_shift, ["int64", "uint64"], "one dtype"),
    ],
)
def test_a_missing_loop_suggests_a_cure(ufunc, names, words):
    with pytest.raises(DtypeError, match=words) as caught:
        resolve_ufunc(ufunc, tuple((np.dtype(name), False) for name in names))
    assert names[0] in str(caught.value)


def test_the_number_of_operands_is_checked():
    with pytest.raises(DtypeError, match="takes 2 arrays, got 1"):
        resolve_ufunc(np.add, ((np.dtype("int8"), False),))


def test_supported_dtypes_are_canonical():
    assert len(SUPPORTED) == 14
    for dtype in SUPPORTED:
        assert check_supported(dtype, "x") is dtype
    assert canonical(np.longlong) is canonical(np.int64)
    assert canonical(np.ulonglong) is canonical("uint64")
    assert [canonical(cls) for cls in (bool, int, float, complex)] == ["?", "i8", "f8", "c16"]


@pytest.mark.parametrize(
    ("dtype", "cure"),
    [
        ("longdouble", "x.astype(np.float64)"),
        ("clongdouble", "x.astype(np.complex128)"),
        ("object", "dtype=float"),
        ("U3", "integers"),
        ("S3", "integers"),
        ("datetime64[s]", "np.timedelta64"),
        ("timedelta64[s]", "np.timedelta64"),
        ([("a", "f8"), ("b", "i4")], "each field"),
        (">f8", "x.astype(np.float64)"),
    ],
)
def test_an_unsupported_dtype_suggests_another(dtype, cure):
    for check in (check_supported, canonical):
        with pytest.raises(UnsupportedDtypeError) as caught:
            check(np.dtype(dtype), "sin: argument 0")
        assert "sin: argument 0" in str(caught.value)
        assert cure in str(caught.value)
        assert isinstance(caught.value, TypeError)


def test_arguments_that_are_not_dtypes():
    with pytest.raises(UnsupportedDtypeError, match="zeros: 'flaot32' is not a dtype"):
        canonical("flaot32", "zeros")
    with pytest.raises(UnsupportedDtypeError, match="str is not a Python scalar type"):
        python_scalar_dtype(str)


def test_kinds():
    by_name = {dtype.name: dtype for dtype in SUPPORTED}
    assert {n for n, d in by_name.items() if is_float(d)} == {"float16", "float32", "float64"}
    assert {n for n, d in by_name.items() if is_complex(d)} == {"complex64", "complex128"}
    assert {n for n, d in by_name.items() if is_inexact(d)} == {
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    }
    assert {n for n, d in by_name.items() if is_integer(d)} == {n for n in by_name if "int" in n}


def test_real_and_complex_partners():
    for dtype in SUPPORTED:
        assert real_dtype(dtype) == np.ones(1, dtype).real.dtype
        assert complex_dtype(dtype) == np.result_type(dtype, 1j if is_inexact(dtype) else np.complex128)
