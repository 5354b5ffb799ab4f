"""Public ufuncs: NumPy's values and dtypes for every pair of dtypes and Python numbers; refusals."""

import itertools
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.core.dtypes import SUPPORTED
from functrans.core.operators import operators
from functrans.errors import (
    ArgumentError,
    DtypeError,
    FunctransError,
    ImmutableArrayError,
    ShapeError,
    UnsupportedDtypeError,
)
from functrans.primitives import ufuncs

UNARY = [u for u in operators.ufunc if u.nin == 1 and u.nout == 1 and hasattr(np, u.__name__)]
BINARY = [
    u
    for u in operators.ufunc
    if u.nin == 2 and u.nout == 1 and hasattr(np, u.__name__) and u.signature is None
]
OPERANDS = {
    "b": [True, False, True],
    "i": [3, -2, 1],
    "u": [3, 2, 1],
    "f": [0.5, -0.25, 2.0],
    "c": [0.5 + 1j, -0.25, 2 - 1j],
}
NUMBERS = [True, 2, 0.5, 1 - 2j]


def name(x):
    return getattr(x, "__name__", str(x))


def arrays(dtype):
    return np.array(OPERANDS[dtype.kind], dtype)


def outcome(f, *args):
    """What NumPy gives, or its error."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as error:
            return error


def same(ours, theirs):
    if isinstance(theirs, Exception):
        wanted = (TypeError, ValueError, OverflowError)
        kind = next(k for k in wanted if isinstance(theirs, k))
        return isinstance(ours, kind)
    if isinstance(ours, Exception):
        raise ours
    if theirs.dtype == object:
        return True
    tolerance = {"float16": 1e-3, "float32": 1e-6, "complex64": 1e-6}.get(theirs.dtype.name, 1e-14)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and type(ours) is Array


@pytest.mark.parametrize("ufunc", UNARY, ids=name)
def test_unary(ufunc):
    ours = operators.ufunc[ufunc]
    for x in [*[arrays(d) for d in SUPPORTED], *[d.type(1) for d in SUPPORTED], *NUMBERS, [1.0, 2.0]]:
        assert same(outcome(ours, x), outcome(ufunc, x)), repr(x)


@pytest.mark.parametrize("ufunc", BINARY, ids=name)
def test_binary(ufunc):
    ours = operators.ufunc[ufunc]
    values = [*[arrays(d) for d in SUPPORTED], *NUMBERS]
    for x, y in itertools.product(values, values):
        assert same(outcome(ours, x, y), outcome(ufunc, x, y)), (x, y)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.less, np.power, np.floor_divide], ids=name)
def test_binary_broadcasts(ufunc):
    x, y = np.arange(1.0, 7).reshape(2, 3), np.arange(1.0, 4)
    for a, b in ((x, y), (y, x), (x[:, :1], y), (x, np.float64(2)), (x[:0], y), (x[::-1, ::2], y[::2])):
        assert np.array_equal(operators.ufunc[ufunc](a, b), ufunc(a, b))


def test_every_ufunc_of_the_list_is_there():
    wanted = """
        add subtract multiply divide true_divide floor_divide remainder mod fmod divmod power float_power
        negative positive absolute fabs sign signbit copysign nextafter maximum minimum fmax fmin
        reciprocal square sqrt cbrt exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 sin cos tan
        arcsin arccos arctan arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh degrees radians deg2rad
        rad2deg floor ceil trunc rint equal not_equal less less_equal greater greater_equal logical_and
        logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert left_shift
        right_shift isfinite isinf isnan conjugate gcd lcm ldexp spacing heaviside modf matmul
    """
    for each in wanted.split():
        assert getattr(np, each) in operators.ufunc, each
        assert callable(getattr(fnp, each)), each


def test_a_method_of_tensors_that_arrays_lack_names_the_ufunc():
    for ufunc in (*UNARY, *BINARY):
        method = ufunc.__name__
        if not hasattr(np.ndarray, method):
            with pytest.raises(AttributeError, match=f"'{method}'.*write"):
                ft.make_jaxpr(lambda x, method=method: getattr(x, method))(1.0)
    with pytest.raises(AttributeError, match=r"write functrans\.scipy\.special\.erfcx\(x\)"):
        ft.make_jaxpr(lambda x: x.erfcx())(1.0)
    with pytest.raises(AttributeError, match=r"write functrans\.numpy\.logaddexp\(x, y\)"):
        ft.make_jaxpr(lambda x: x.logaddexp(x))(1.0)


def test_results_of_numbers_are_strong():
    for value, dtype in ((3.0, np.float64), (3, np.float64), (1j, np.complex128)):
        assert fnp.sin(value).dtype == dtype
        assert type(fnp.sin(value)) is Array
    assert fnp.add(1, 2).dtype == np.int64


def test_results_do_not_share_memory_with_arguments():
    x = np.arange(3)
    for f in (
        fnp.positive,
        fnp.conjugate,
        fnp.floor,
        fnp.trunc,
        fnp.rint,
        lambda a: fnp.power(a, 1),
        fnp.absolute,
    ):
        assert not np.shares_memory(f(x), x), f
    assert np.array_equal(x, np.arange(3))


def test_integer_powers():
    x = np.array([0.3, -2.0, np.inf, np.nan, 0.0])
    with np.errstate(all="ignore"):
        for n in (-20, -3, -1, 0, 1, 2, 3, 8, 16, 40, 2.0, 3.0, -2.0, 0.5):
            np.testing.assert_allclose(fnp.power(x, n), np.power(x, n), rtol=1e-14)
        assert fnp.power(np.float32(3), 2).dtype == np.float32
        assert fnp.power(np.arange(3), 2).dtype == np.int64
        assert fnp.power(np.arange(3), 2.0).dtype == np.float64
        assert fnp.power(np.arange(3, dtype=np.int8), 100).dtype == np.int8
    assert np.array_equal(fnp.power(np.arange(4, dtype=np.int8), 7), np.power(np.arange(4, dtype=np.int8), 7))
    with pytest.raises(ValueError, match=r"to (the|a) negative power"):
        fnp.power(np.arange(3), -1)
    with pytest.raises(ValueError, match="negative"):
        fnp.power(np.arange(3), np.array([-1, 2, 2]))


def test_comparison_with_python_integers_beyond_the_dtype():
    x = np.array([0, 200], np.uint8)
    for n in (-1, 300, 2**70, -(2**70)):
        for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
            assert np.array_equal(operators.ufunc[f](x, n), f(x, n)), (f, n)
            assert np.array_equal(operators.ufunc[f](n, x), f(n, x)), (f, n)


def test_comparison_of_signed_with_unsigned_is_exact():
    i = np.array([-1, 0, 2**63 - 1, 2**62 + 1])
    u = np.array([2**64 - 1, 0, 2**63, 2**62], np.uint64)[:, None]
    for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
        assert np.array_equal(operators.ufunc[f](i, u), f(i, u))
        assert np.array_equal(operators.ufunc[f](u, i), f(u, i))


def test_two_results():
    x = np.array([-7.5, 7.5, np.inf, -0.0])
    with np.errstate(all="ignore"):
        for ours, theirs in zip(fnp.divmod(x, 2), np.divmod(x, 2)):
            assert np.array_equal(ours, theirs, equal_nan=True)
        for ours, theirs in zip(fnp.modf(x), np.modf(x)):
            assert np.array_equal(ours, theirs, equal_nan=True)
            assert np.array_equal(np.signbit(ours), np.signbit(theirs))


def test_ldexp_is_exact_to_the_ends_of_the_range():
    x = np.array([1.5, 5e-324, 1e308, 0.0, np.inf, -3.0])
    n = np.array([-2200, -1074, -1000, -1, 0, 1, 511, 512, 1000, 2097, 2200, 10**6])[:, None]
    with np.errstate(all="ignore"):
        assert np.array_equal(fnp.ldexp(x, n), np.ldexp(x, n))
        x, n = x.astype(np.float32), n.astype(np.int32)
        assert np.array_equal(fnp.ldexp(x, n), np.ldexp(x, n))


def test_dtype_option():
    assert fnp.add(np.float32(1), np.float32(2), dtype=np.float64).dtype == np.float64
    assert fnp.sin(1, dtype="f4").dtype == np.float32


REFUSALS = {
    "shapes": (lambda: fnp.add(np.ones(3), np.ones(4)), ShapeError, r"add: shapes \(3,\) and \(4,\)"),
    "dtype": (lambda: fnp.bitwise_and(1.0, 2.0), DtypeError, "bitwise_and"),
    "complex": (lambda: fnp.floor(1j), DtypeError, "floor"),
    "text": (lambda: fnp.sin("a"), ArgumentError, "argument 0 is 'a' of type str"),
    "none": (lambda: fnp.add(1, None), ArgumentError, "argument 1 is None"),
    "object": (lambda: fnp.sin(np.array([None, 1])), UnsupportedDtypeError, "object"),
    "text array": (lambda: fnp.add(np.array(["a"]), 1), UnsupportedDtypeError, "<U1"),
    "byte order": (lambda: fnp.sin(np.ones(2, ">g")), UnsupportedDtypeError, "byte order"),
    "longdouble": (lambda: fnp.sin(np.longdouble(1)), UnsupportedDtypeError, "float64"),
    "ragged": (lambda: fnp.sin([[1, 2], [3]]), ShapeError, "argument 0 is not a valid array"),
    "out": (lambda: fnp.sin(np.ones(3), out=np.ones(3)), ImmutableArrayError, "returned value"),
    "where": (lambda: fnp.sin(np.ones(3), where=np.ones(3, bool)), ArgumentError, "functrans.numpy.where"),
    "option": (lambda: fnp.sin(1.0, signature="d->d"), ArgumentError, "signature"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_typed_and_name_the_line(case):
    call, kind, message = REFUSALS[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, FunctransError)
    assert "test_ufuncs.py" in str(caught.value)


def test_python_integers_out_of_range_overflow_as_in_numpy():
    with pytest.raises(OverflowError):
        fnp.add(np.int8(1), 300)


def test_docstrings_name_the_function_of_numpy():
    for ufunc in [*UNARY, *BINARY]:
        function = operators.ufunc[ufunc]
        assert ufunc.__name__ in function.__doc__
        assert function.__name__ == ufunc.__name__
    assert ufuncs.mod is ufuncs.remainder
