"""What NumPy takes as an index, an operand or a container of rows, `Array`s and traced values take as well."""

import array
import inspect
from collections import deque, namedtuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.core import operators

pd = pytest.importorskip("pandas")
X = np.arange(12.0).reshape(4, 3) + 1.0
MASK = np.array([True, False, True, True])
Pair = namedtuple("Pair", "first second")


class ByArray:
    def __init__(self, a):
        self.a = np.asarray(a)

    def __array__(self, dtype=None, copy=None):
        return self.a if dtype is None else self.a.astype(dtype)


class ByInterface:
    def __init__(self, a):
        self.a = np.asarray(a)
        self.__array_interface__ = self.a.__array_interface__


class ByIndex:
    def __init__(self, i):
        self.i = i

    def __index__(self):
        return self.i


class BySequence:
    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


INDICES = {
    "a Series": pd.Series([0, 2]),
    "the complement of a Series": ~pd.Series(MASK),
    "an Index": pd.Index([1, 2]),
    "a DataFrame": pd.DataFrame([[0, 1], [2, 3]]),
    "an extension array": pd.array([True, False, True, True]),
    "a memoryview": memoryview(np.array([0, 2])),
    "an array.array": array.array("l", [0, 2]),
    "a bytearray": bytearray(b"\x00\x01"),
    "__array__": ByArray([0, 2]),
    "__array__ of a mask": ByArray(MASK),
    "__array__ of a number": ByArray(2),
    "__array_interface__": ByInterface([0, 1]),
    "__index__": ByIndex(2),
    "two __index__": (ByIndex(1), ByIndex(2)),
    "slices of __index__": slice(ByIndex(1), ByIndex(3)),
    "a Series and a slice": (pd.Series([3, 0]), slice(None, 2)),
    "np.True_": np.True_,
    "np.False_": np.False_,
    "a mask of no axes": np.array(True),
    "a list of NumPy numbers": [np.int64(0), np.int8(1)],
    "a list of bools": [True, False, False, True],
    "a range": range(2),
    "a deque": deque([0, 2]),
    "a sequence": BySequence([0, 2]),
    "an empty list": [],
    "an empty Series": pd.Series([], dtype=int),
}
WRONG = {
    "floats": pd.Series([0.0, 1.0]),
    "floats by __array__": ByArray([0.0]),
    "a string": "a",
    "bytes": b"\x00",
    "a dict": {1: 2},
    "a set": {1},
    "an object": object(),
    "a generator": (i for i in range(2)),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"),
}
OPERANDS = {
    "a Series": pd.Series([1.0, 2.0, 3.0]),
    "an Index": pd.Index([1.0, 2.0, 3.0]),
    "a DataFrame": pd.DataFrame([[1.0, 2.0, 3.0]]),
    "a memoryview": memoryview(np.array([1.0, 2.0, 3.0])),
    "an array.array": array.array("d", [1, 2, 3]),
    "a bytearray": bytearray(b"abc"),
    "__array__": ByArray([1.0, 2.0, 3.0]),
    "__array_interface__": ByInterface([1.0, 2.0, 3.0]),
    "a range": range(3),
    "a deque": deque([1.0, 2.0, 3.0]),
    "a sequence": BySequence([1.0, 2.0, 3.0]),
    "np.bool_": np.True_,
}
OPERATIONS = [
    lambda t, o: t + o,
    lambda t, o: o * t,
    lambda t, o: o - t,
    lambda t, o: t > o,
    lambda t, o: np.maximum(o, t),
    lambda t, o: np.where(t > 3.0, o, t),
]
CONTAINERS = {
    "a list": list,
    "a tuple": tuple,
    "a deque": deque,
    "a sequence": BySequence,
    "the array": lambda t: t,
    "an array of objects": lambda t: objects([t[0], t[1]]),
    "a Series of rows": lambda t: pd.Series([t[0], t[1]]),
    "rows and lists": lambda t: [t[0], [1, 2, 3], (4.0, 5, 6)],
    "rows and lists of elements": lambda t: [t[0], [t[0, 0], 1, 2]],
    "rows and a memoryview": lambda t: [t[0], memoryview(np.ones(3))],
    "rows and a Series": lambda t: [t[0], pd.Series([1.0, 2, 3])],
    "a named tuple": lambda t: Pair(t[0], t[1]),
}
JOINERS = ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")


def objects(rows):
    out = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def forms(f):
    """The function of an `Array`, and of values traced by each transformation."""
    yield lambda x: f(fnp.asarray(x))
    yield ft.jit(f)
    yield lambda x: ft.jvp(f, (x,), (x,))[0]
    yield lambda x: ft.vjp(f, x)[0]
    yield lambda x: ft.vmap(f)(x[None])[0]


def agree(f, x=X):
    """Compare all forms with NumPy."""
    expected = np.asarray(f(x))
    for form in forms(f):
        actual = np.asarray(form(x))
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", INDICES)
def test_indices(name):
    index = INDICES[name]
    agree(lambda t: t[index])
    expected = X.copy()
    expected[index] = 7.0
    for form in forms(lambda t: t.at[index].set(7.0)):
        np.testing.assert_array_equal(np.asarray(form(X)), expected)


@pytest.mark.parametrize("name", WRONG)
def test_what_numpy_refuses_as_an_index(name):
    with pytest.raises(IndexError):
        X[WRONG[name]]
    for form in forms(lambda t: t[WRONG[name]]):
        with pytest.raises(IndexError, match="integers"):
            form(X)


def test_traced_indices_in_containers():
    constant = fnp.asarray(X)
    for made in (list, deque, BySequence, objects):
        pick = ft.jit(lambda i, t, made=made: (t[made([i, i + 1])], constant[made([i, i + 1])]))
        for picked in pick(1, X):
            np.testing.assert_array_equal(picked, X[1:3])
    mixed = ft.vmap(lambda i: fnp.asarray(X)[[i, np.int64(1), ByIndex(2)], 0])
    np.testing.assert_array_equal(mixed(np.arange(2)), [X[[0, 1, 2], 0], X[[1, 1, 2], 0]])


@pytest.mark.parametrize("name", OPERANDS)
def test_operands(name):
    operand = OPERANDS[name]
    plain = np.asarray(operand)
    for operation in OPERATIONS:
        expected = operation(X, plain)
        for form in list(forms(lambda t, f=operation: f(t, operand)))[
            1:
        ]:  # pandas computes with an Array itself
            actual = np.asarray(form(X))
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(actual, expected)


def test_products_with_foreign_operands():
    weights = np.array([1.0, 2.0, 3.0])
    for operand in (pd.Series(weights), ByArray(weights), memoryview(weights), range(1, 4)):
        np.testing.assert_array_equal(ft.jit(lambda t, o=operand: t @ o)(X), X @ weights)
        np.testing.assert_array_equal(
            ft.grad(lambda t, o=operand: fnp.sum(t @ o))(X), np.tile(weights, (4, 1))
        )
    with pytest.raises(ft.errors.TracerArrayConversionError, match="asarray\\(series\\)"):
        ft.jit(lambda t: pd.Series(weights) @ t)(X.T)


def test_arguments_of_transformations():
    v = np.array([1.0, 2.0, 3.0])
    for argument in (memoryview(v), array.array("d", v), ByInterface(v), pd.Series(v), ByArray(v)):
        np.testing.assert_array_equal(ft.jit(lambda a: 2.0 * a)(argument), 2.0 * v)
        np.testing.assert_array_equal(ft.grad(lambda a: fnp.sum(a * a))(argument), 2.0 * v)


def test_objects_that_compute_by_themselves_do():
    class Own:
        __array_ufunc__ = None

        def __array__(self, dtype=None, copy=None):
            return np.ones(3)

        def __radd__(self, other):
            return "its own"

    seen = []
    ft.jit(lambda t: (seen.append(t + Own()), t)[1])(X)
    assert seen == ["its own"]
    for other in ({1: 2}, {1, 2}, "a", object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            ft.jit(lambda t, other=other: t + other)(X)


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_rows(name):
    made = CONTAINERS[name]
    for joiner in JOINERS:
        agree(lambda t, f=joiner: getattr(np, f)(made(t)))
        np.testing.assert_array_equal(
            getattr(fnp, joiner)(made(fnp.asarray(X))), getattr(np, joiner)(made(X))
        )


@pytest.mark.parametrize("joiner", JOINERS)
def test_iterators_are_no_containers(joiner):
    for made in (lambda t: (row for row in t), lambda t: map(fnp.sin, t), iter, lambda t: {0: t[0]}.values()):
        with pytest.raises(TypeError):
            getattr(np, joiner)(made(X))
        for form in forms(lambda t, made=made: getattr(np, joiner)(made(t))):
            with pytest.raises(TypeError, match="sequence"):
                form(X)


def test_block():
    agree(lambda t: np.block([t[0], t[1], 5.0]))
    agree(lambda t: np.block([[t, t], [memoryview(np.ones((1, 3))), t[:1]]]))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_r_and_c():
    agree(lambda t: np.r_[t[0], t[1]])
    agree(lambda t: np.r_[t[0, 0], 0, t[1], 1:3, 0.0:1.0:3j])
    agree(lambda t: np.r_["0,2", t[0], t])
    agree(lambda t: np.r_["0,2,0", t[0], t[:, :1]])
    agree(lambda t: np.r_["-1", t, t, np.ones((4, 1), np.float32)])
    agree(lambda t: np.r_[t.astype(np.int8)[0], np.arange(2, dtype=np.int16)])
    agree(lambda t: np.c_[t[0], t[1]])
    agree(lambda t: np.c_[t, np.ones(4), pd.Series([1, 2, 3, 4])])
    agree(lambda t: np.c_[t[0, 0], t[1, 1]])
    for r_, c_ in ((np.r_, np.c_), (fnp.r_, fnp.c_)):
        gradient = ft.grad(lambda t, r_=r_, c_=c_: (r_[t[0], 1.0, t[1]] ** 2).sum() + c_[t[2], t[3]].prod())(
            X
        )
        np.testing.assert_allclose(gradient[:2], 2.0 * X[:2])
        np.testing.assert_allclose(gradient[2:], X[2:].prod() / X[2:])
    with pytest.raises(ft.errors.ShapeError):
        ft.jit(lambda t: np.r_[t[0], t])(X)
    with pytest.raises(ft.errors.TracerArrayConversionError, match="no matrix class"):
        ft.jit(lambda t: np.r_["r", t[0]])(X)


def test_functions_by_keyword():
    np.testing.assert_array_equal(
        ft.jit(lambda t: fnp.where(condition=t > 3.0, x=t, y=0.0))(X), np.where(X > 3.0, X, 0.0)
    )
    agree(lambda t: np.sinc(x=t))
    agree(lambda t: np.clip(a=t, a_min=2.0, a_max=5.0))
    agree(lambda t: np.interp(x=t, xp=[0.0, 16.0], fp=[0.0, 2.0]))


#: Parameters that mean nothing for a traced value: the class and the depth of what `numpy.array` makes. The others are
#: deprecated in NumPy 2.1 and before, and gone since.
LEFT_OUT = {
    np.array: {"subok", "ndmax"},
    np.reshape: {"newshape"},
    np.corrcoef: {"bias", "ddof"},
    **{f: {"interpolation"} for f in (np.percentile, np.quantile, np.nanpercentile, np.nanquantile)},
}


def test_every_function_takes_its_arguments_by_the_names_that_numpy_gives_them():
    for function, own in operators.function.items():
        if not callable(function) or isinstance(function, type):
            continue
        try:
            signature = inspect.signature(function)
        except ValueError:  # before NumPy 2.4, of functions in C
            continue
        given = {
            name
            for name, p in signature.parameters.items()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        parameters = inspect.signature(own).parameters
        taken = {name for name, p in parameters.items() if p.kind is not p.POSITIONAL_ONLY}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            assert given - LEFT_OUT.get(function, set()) <= taken, function
