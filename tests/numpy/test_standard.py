"""The Python array API standard 2024.12: every name, signatures, and the protocol of arrays and traced values."""

import inspect

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

FUNCTIONS = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
    "astype",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "square",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "trunc",
    "take",
    "take_along_axis",
    "matmul",
    "matrix_transpose",
    "tensordot",
    "vecdot",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
    "argmax",
    "argmin",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "where",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "argsort",
    "sort",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
    "all",
    "any",
    "diff",
]
LINALG = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
FFT = [
    "fft",
    "ifft",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]
CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def function(name):
    """A case, if NumPy has the function."""
    new = name in ("cumulative_prod", "cumulative_sum", "unstack")
    return pytest.param(name, marks=[pytest.mark.needs("numpy>=2.1", reason="new there")] if new else [])


@pytest.mark.parametrize("name", [function(name) for name in FUNCTIONS])
def test_functions(name):
    ours, theirs = getattr(fnp, name), getattr(np, name)
    assert callable(ours)
    try:
        wanted = inspect.signature(theirs).parameters
    except (TypeError, ValueError):
        return
    if inspect.isclass(theirs) or isinstance(theirs, np.ufunc):
        return
    found = inspect.signature(ours).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in found.values())
    for parameter in wanted.values():
        # NumPy's own options of memory layout, what its C functions call themselves, and a name before NumPy 2.4.
        if parameter.name in (
            "like",
            "order",
            "subok",
            "out",
            "start_or_stop",
            "newshape",
        ) or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            continue
        assert parameter.name in found or open_ended, parameter
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name in found:
            assert found[parameter.name].kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)


def test_extensions_constants_and_dtypes():
    assert [n for n in LINALG if not callable(getattr(fnp.linalg, n, None))] == []
    assert [n for n in FFT if not callable(getattr(fnp.fft, n, None))] == []
    for name in CONSTANTS + DTYPES:
        theirs = getattr(np, name)
        assert getattr(fnp, name) is theirs or getattr(fnp, name) == theirs


@pytest.mark.needs("numpy>=2.1", reason="__array_namespace_info__ is NumPy's")
def test_namespace_info():
    assert fnp.__array_api_version__ == np.__array_api_version__
    info = fnp.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert info.default_dtypes()["real floating"] == fnp.zeros(1).dtype
    assert set(info.dtypes()) == set(DTYPES)


def test_the_protocol_of_arrays():
    def of(x):
        assert x.__array_namespace__() is fnp
        assert x.__array_namespace__(api_version="2023.12") is fnp
        with pytest.raises(ValueError):
            x.__array_namespace__(api_version="1999")
        assert x.device == "cpu"
        assert x.to_device("cpu") is x or x.to_device("cpu").shape == x.shape
        with pytest.raises(ValueError):
            x.to_device("gpu")
        assert x.__dlpack_device__() == (1, 0)
        assert x.mT.shape == x.shape[::-1] == x.T.shape
        assert isinstance(x, ft.Array)
        assert isinstance(x, fnp.ndarray)
        return x * 1

    x = fnp.ones((2, 3))
    for f in (of, ft.jit(of), ft.vmap(lambda row: of(fnp.outer(row, row[:1])))):
        f(x)
    ft.vjp(of, x)
    assert not isinstance(np.ones(3), ft.Array)
    assert not isinstance(3.0, ft.Array)
    np.testing.assert_array_equal(np.from_dlpack(np.asarray(x).copy()), x)


@pytest.mark.needs("numpy>=2.1", reason="NumPy 2.0 looks for __dlpack__ in the class")
def test_from_dlpack_of_a_traced_value():
    with pytest.raises(errors.TracerArrayConversionError):
        ft.jit(lambda x: np.from_dlpack(x))(fnp.ones((2, 3)))


def test_from_dlpack():
    x = np.arange(3.0)
    y = fnp.from_dlpack(x)
    assert type(y) is ft.Array
    assert not np.shares_memory(x, y)
    assert fnp.from_dlpack(y, copy=False) is not None
    assert ft.jit(lambda t: fnp.from_dlpack(t) * 2)(x).shape == (3,)
    for bad in (
        lambda: fnp.from_dlpack([1]),
        lambda: fnp.from_dlpack(x, device="gpu"),
        lambda: fnp.from_dlpack(x, copy=False),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            bad()
        assert isinstance(caught.value, errors.FunctransError)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: fnp.zeros(3, **k), lambda **k: fnp.ones(3, **k), lambda **k: fnp.empty(3, **k),
        lambda **k: fnp.full(3, 1, **k), lambda **k: fnp.eye(3, **k), lambda **k: fnp.arange(3, **k),
        lambda **k: fnp.linspace(0, 1, 3, **k), lambda **k: fnp.zeros_like([1], **k), lambda **k: fnp.asarray([1], **k),
        lambda **k: fnp.ones_like([1], **k), lambda **k: fnp.empty_like([1], **k),
        lambda **k: fnp.full_like([1], 2, **k),
    ],
)  # fmt: skip
def test_devices(make):
    assert type(make(device="cpu")) is type(make(device=None)) is ft.Array
    with pytest.raises(errors.ArgumentValueError, match="device"):
        make(device="gpu")
    with pytest.raises(TypeError):
        make(devices="cpu")


def test_copy():
    x = np.arange(3.0)
    y = fnp.asarray(x)
    assert fnp.asarray(y, copy=False) is not None
    assert not np.shares_memory(fnp.asarray(y, copy=True), y)
    with pytest.raises(errors.ArgumentValueError, match="copy=False"):
        fnp.asarray(x, copy=False)
    with pytest.raises(errors.ArgumentValueError, match="copy=False"):
        fnp.array(x, copy=False)


def test_questions(same):
    same("real_if_close", [2.1 + 4e-16j])
    same("real_if_close", [2.1 + 4e-10j])
    same("real_if_close", [2.1, 3])
    same("ascontiguousarray", 3.0)
    same("ascontiguousarray", np.arange(6).reshape(2, 3).T)
    same("asanyarray", [1, 2], float)
    assert fnp.common_type([1], np.float32(1)) is np.common_type(np.array([1]), np.float32(1))
    assert fnp.min_scalar_type(-300) == np.min_scalar_type(-300)
    assert fnp.min_scalar_type(np.ones(3)) == np.float64
    x = fnp.arange(3.0)
    assert fnp.shares_memory(x, x[1:])
    assert fnp.may_share_memory(x, x[1:])
    assert not ft.jit(lambda t: t * fnp.shares_memory(t, t))(1.0)
    assert fnp.array_repr(x) == repr(x)
    assert fnp.array_str(x) == str(x)
    texts = []
    ft.jit(lambda t: texts.extend([np.array_repr(t), np.array_str(t)]) or t)(1.0)
    assert all("f64" in text for text in texts)
    np.testing.assert_array_equal(fnp.frombuffer(np.arange(3.0).tobytes()), np.arange(3.0))
    np.testing.assert_array_equal(fnp.fromstring("1,2", sep=","), [1, 2])
    np.testing.assert_array_equal(fnp.fromiter(range(3), float), np.arange(3.0))
    assert fnp.iterable([1])
    assert not fnp.iterable(1)
