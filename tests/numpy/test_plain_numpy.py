"""Plain NumPy on traced values: every function here is what NumPy's function does; errors name the nearest."""

import inspect

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy
from functrans import errors, lax
from functrans.core.operators import operators

X = np.arange(6.0).reshape(2, 3)

#: Functions of NumPy that ask no argument what it is, and why that is no loss.
NOT_ASKED = {
    "of numbers that are not traced": """
        bartlett blackman hamming hanning broadcast_shapes finfo iinfo promote_types issubdtype isdtype errstate
        get_printoptions set_printoptions printoptions""",
    "of sources that are no arrays": "frombuffer fromiter fromstring from_dlpack fromfunction vectorize",
    "converts at once; the error says so": "kaiser",
    "Python's isinstance and iter": "isscalar iterable",
    "reads or writes files": "fromfile load save savez",
    "makes a function": "frompyfunc",
}
EXCEPTIONS = {name for names in NOT_ASKED.values() for name in names.split()}


def functions(ours, theirs):
    for name in ours.__all__:
        found = getattr(theirs, name, None)
        if callable(found) and not inspect.isclass(found):
            yield name, found


@pytest.mark.parametrize(("ours", "theirs"), [(fnp, np), (fnp.linalg, np.linalg), (fnp.fft, np.fft)])
def test_every_function_is_reached(ours, theirs):
    known = {**operators.function, **operators.ufunc}
    unreached = [name for name, g in functions(ours, theirs) if g not in known and name not in EXCEPTIONS]
    assert unreached == [] or set(unreached) <= {"fftfreq", "rfftfreq"}
    if ours is fnp:
        assert [n for n in EXCEPTIONS if n not in fnp.__all__] == []


def test_names_of_numpy():
    """What NumPy's main namespace has for arrays of numbers is here, but for these."""
    absent = [
        "array2string",
        "asarray_chkfinite",
        "asfortranarray",
        "asmatrix",
        "base_repr",
        "binary_repr",
        "bmat",
        "broadcast",
        "busday_count",
        "busday_offset",
        "busdaycalendar",
        "copyto",
        "datetime_as_string",
        "datetime_data",
        "flatiter",
        "format_float_positional",
        "format_float_scientific",
        "fromfile",
        "fromregex",
        "frompyfunc",
        "genfromtxt",
        "get_include",
        "getbufsize",
        "geterr",
        "geterrcall",
        "in1d",
        "info",
        "is_busday",
        "isfortran",
        "isnat",
        "load",
        "loadtxt",
        "matrix",
        "memmap",
        "mintypecode",
        "ndenumerate",
        "ndindex",
        "nditer",
        "nested_iters",
        "poly1d",
        "recarray",
        "require",
        "row_stack",
        "savetxt",
        "savez_compressed",
        "setbufsize",
        "seterr",
        "seterrcall",
        "show_config",
        "show_runtime",
        "test",
        "trapz",
        "typename",
        "ufunc",
    ]
    missing = [
        name
        for name in dir(np)
        if not name.startswith("_")
        and callable(getattr(np, name))
        and name not in fnp.__all__
        and not (inspect.isclass(getattr(np, name)) and issubclass(getattr(np, name), np.generic))
    ]
    assert set(missing) <= set(absent), sorted(set(missing) - set(absent))


METHODS = {
    "all": (), "any": (), "argmax": (), "argmin": (1,), "argpartition": (1,), "argsort": (), "astype": (np.float32,),
    "choose": ([1.0, 2.0],), "clip": (1, 2), "compress": ([True, False], 0), "conj": (), "conjugate": (), "copy": (),
    "cumprod": (), "cumsum": (1,), "diagonal": (), "dot": (X.T,), "flatten": (), "max": (), "mean": (0,), "min": (1,),
    "prod": (), "ravel": (), "repeat": (2,), "reshape": (3, 2), "round": (1,), "searchsorted": (1.5,), "squeeze": (),
    "std": (), "sum": (), "swapaxes": (0, 1), "take": ([0, 5],), "trace": (), "transpose": (), "var": (),
    "view": (np.int64,),
}  # fmt: skip
ATTRIBUTES = [
    "T",
    "mT",
    "real",
    "imag",
    "shape",
    "dtype",
    "ndim",
    "size",
    "itemsize",
    "nbytes",
    "strides",
    "device",
    "base",
]
NEED_NUMBERS = {
    "byteswap": (), "dump": ("f",), "dumps": (), "getfield": (int,), "item": (), "nonzero": (), "tobytes": (),
    "tofile": ("f",), "tolist": (),
}  # fmt: skip
WOULD_CHANGE = {
    "fill": (0,), "partition": (1,), "put": (0, 1), "resize": (3,), "setfield": (1, float), "setflags": (True,),
    "sort": (),
}  # fmt: skip
WOULD_CHANGE |= {
    name: arg for name, arg in {"_set_dtype": (int,), "_set_shape": ((-1,),)}.items() if hasattr(X, name)
}
NO_MEMORY = ["ctypes", "data", "flags"]
#: Of old releases. Three of them have only an error, which says what to write.
OLD = {"itemset", "newbyteorder", "ptp", "tostring"}


def test_every_method_is_accounted_for():
    accounted = {*METHODS, *ATTRIBUTES, *NEED_NUMBERS, *WOULD_CHANGE, *NO_MEMORY, "flat", "to_device"}
    assert {n for n in dir(np.ndarray) if not n.startswith("__")} - OLD == accounted


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    x = {"choose": X.astype(int) % 2, "squeeze": X[None], "searchsorted": X[1]}.get(name, X)
    args = METHODS[name]
    expected = np.asarray(getattr(x, name)(*args))
    for out in (ft.jit(lambda x: getattr(x, name)(*args))(x), getattr(fnp.asarray(x), name)(*args)):
        assert np.asarray(out).dtype == expected.dtype
        np.testing.assert_allclose(out, expected)


def test_views_of_other_sizes():
    for x, dtype in (
        (X, np.uint8),
        (X.astype(np.float32)[:, :2], float),
        (X[0].astype(np.uint16)[:2], np.int32),
    ):
        np.testing.assert_array_equal(
            ft.jit(lambda x, to=dtype: x.view(to))(x), np.ascontiguousarray(x).view(dtype)
        )
    with pytest.raises(errors.ArgumentValueError, match="whole number"):
        ft.jit(lambda x: x.astype(np.int8).view(int))(X)


def test_attributes():
    def of(x):
        assert [getattr(x, n) for n in ATTRIBUTES[4:12]] == [getattr(X, n) for n in ATTRIBUTES[4:12]]
        assert x.base is None
        assert [*x.flat][3].shape == ()
        assert x.setflags(write=False) is None
        return x.T, x.mT, x.real, x.imag, x.flat

    for got, expected in zip(ft.jit(of)(X), (X.T, X.mT, X.real, X.imag, X.ravel())):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", {**NEED_NUMBERS, **WOULD_CHANGE})
def test_methods_that_cannot_be(name):
    args = {**NEED_NUMBERS, **WOULD_CHANGE}[name]
    with pytest.raises(errors.FunctransError) as caught:
        ft.jit(lambda x: getattr(x, name)(*args))(X)
    assert len(str(caught.value)) > 60
    if name in WOULD_CHANGE:
        assert isinstance(caught.value, errors.ImmutableArrayError)
        with pytest.raises(errors.ImmutableArrayError):
            getattr(fnp.asarray(X), name)(*args)


@pytest.mark.parametrize("name", NO_MEMORY)
def test_attributes_that_cannot_be(name):
    with pytest.raises(errors.NoAttributeError, match="memory"):
        ft.jit(lambda x: getattr(x, name))(X)
    assert ft.jit(lambda x: x * hasattr(x, name))(1.0) == 0


def test_numbers_where_there_are_some():
    def f(x):
        assert x.tolist() == X.tolist()
        assert 3.0 in x
        assert 30.0 not in x
        return x.sum()

    with pytest.raises(errors.ConcretizationTypeError, match="any"):
        ft.jit(lambda x: 3.0 in x)(X)
    try:
        ft.grad(f)(X)
    except errors.TracerScalarConversionError:
        pytest.skip("numbers of a list would lose their derivative")


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: np.copyto(x, 1.0), NotImplementedError, "broadcast_to"),
        (lambda x: np.save("file", x), NotImplementedError, "on the result"),
        (lambda x: np.savetxt("file", x), NotImplementedError, "on the result"),
        (lambda x: np.array2string(x), NotImplementedError, "array_str"),
        (lambda x: np.vectorize(lambda v: v + 1)(x), TypeError, "functrans.numpy.vectorize"),
        (lambda x: np.frompyfunc(lambda v: v + 1, 1, 1)(x), NotImplementedError, "functrans.numpy.vectorize"),
        (lambda x: np.kaiser(3, x[0, 0]), TypeError, "functrans.numpy.kaiser"),
        (lambda x: np.random.default_rng(0).permutation(x), TypeError, "cannot become a NumPy array"),
        (lambda x: np.asmatrix(x), TypeError, "matrices"),
        (lambda x: np.isnat(x), Exception, "isnan"),
        (lambda x: np.place(x, x > 0, 1.0), ValueError, "inplace=False"),
        (lambda x: x.unknown, AttributeError, "no attribute 'unknown'"),
    ],
)
def test_what_there_is_not(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        ft.jit(call)(X)
    assert isinstance(caught.value, errors.FunctransError)


@pytest.mark.parametrize(
    ("module", "name", "nearest"),
    [
        (fnp, "sine", "sin"),
        (fnp, "matrix", "array"),
        (fnp, "longdouble", "float64"),
        (fnp.linalg, "eigen", "eig"),
        (fnp.fft, "fft3", "fft"),
        (lax, "sinus", "sin"),
        (functrans.scipy, "lianlg", "linalg"),
        (functrans.scipy.special, "erff", "erf"),
        (functrans.scipy.linalg, "choleski", "cholesky"),
    ],
)
def test_names_that_are_not_there(module, name, nearest):
    assert not hasattr(module, name)
    with pytest.raises(errors.NoAttributeError, match=nearest):
        getattr(module, name)


MIXES = {
    "tracer and ndarray": lambda x: np.concatenate([x, X]),
    "tracer and list": lambda x: np.add(x, [1.0, 2.0, 3.0]),
    "list of tracers": lambda x: np.stack([x[0], x[1] * 2]),
    "nested list of tracers": lambda x: np.multiply(x, [x[0, 0], x[1, 1], 3.0]),
    "ndarray on the left": lambda x: (X @ x.T).sum() + X * x - (x > X) * 1.5,
    "Array on the left": lambda x: fnp.asarray(X) + x,
    "NumPy number on the left": lambda x: np.float32(2.5) * x,
    "where": lambda x: np.where(X > 2, x, 0.0),
    "einsum": lambda x: np.einsum("ij,kj->ik", X, x),
    "outer of a ufunc": lambda x: np.subtract.outer(X[0], x[0]),
}


@pytest.mark.parametrize("name", MIXES)
def test_mixes(name):
    f = MIXES[name]
    out, expected = ft.jit(f)(X), np.asarray(f(X))
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected)


INPUTS = {
    "structured": (np.zeros(2, [("a", float)]), TypeError),
    "object": (np.array([1, None]), TypeError),
    "text": (np.array(["a"]), TypeError),
    "bytes": (np.array([b"a"]), TypeError),
    "dates": (np.array(["2020-01-01"], "M8[D]"), TypeError),
    "durations": (np.array([1], "m8[s]"), TypeError),
    "longdouble": (np.longdouble([1]), TypeError),
    "masked": (np.ma.array([1.0, 2.0], mask=[True, False]), TypeError),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_are_refused(name):
    x, kind = INPUTS[name]
    for f in (fnp.sum, ft.jit(fnp.sum), ft.grad(fnp.sum), fnp.sin, fnp.asarray):
        with pytest.raises(kind) as caught:
            f(x)
        assert isinstance(caught.value, errors.FunctransError)


def test_matrices_are_arrays():
    m = np.asmatrix(X)
    np.testing.assert_array_equal(fnp.multiply(m, m), X * X)
    assert type(fnp.asarray(m)) is ft.Array
