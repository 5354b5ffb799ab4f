"""Operators between an `Array` and objects of other libraries: what they give for an ndarray, the same way round."""

import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.array import Array

M = np.array([[1.0, 2.0], [0.0, 3.0]])
V = np.array([1.0, 2.0])
OPERATORS = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
                 "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne")
} | {"divmod": divmod}  # fmt: skip
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Unit:
    """Takes operators over by ``__array_ufunc__ = None``, as the protocol of NumPy says."""

    __array_ufunc__ = None

    def __mul__(self, other):
        return "Unit *", other

    def __rmul__(self, other):
        return "* Unit", other

    def __rmatmul__(self, other):
        return "@ Unit", other


class Old:
    """Takes operators over by its priority, as programs did before."""

    __array_priority__ = 10.1

    def __rmul__(self, other):
        return "* Old", other

    def __radd__(self, other):
        return "+ Old", other

    def __rmatmul__(self, other):
        return "@ Old", other


class Duck:
    """An array class of its own, with NumPy's protocol for ufuncs."""

    def __init__(self, x):
        self.x = x

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return Duck(getattr(ufunc, method)(*[i.x if isinstance(i, Duck) else i for i in inputs], **kwargs))


class Subclass(np.ndarray):
    """A subclass of ndarray."""


def pandas():
    return pytest.importorskip("pandas")


FOREIGN = {
    **{
        f"{form}_{kind}": lambda form=form, kind=kind: getattr(scipy.sparse, f"{form}_{kind}")(M)
        for form in ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
        for kind in ("array", "matrix")
    },
    "LinearOperator": lambda: scipy.sparse.linalg.aslinearoperator(M),
    "Series": lambda: pandas().Series(V),
    "DataFrame": lambda: pandas().DataFrame(M),
    "Index": lambda: pandas().Index(V),
    "masked": lambda: np.ma.masked_greater(M, 2.0),
    "matrix": lambda: np.asmatrix(M),
    "subclass": lambda: M.view(Subclass),
    "Fraction": lambda: Fraction(1, 2),
    "Decimal": lambda: Decimal("0.5"),
    "complex": lambda: 2.0 + 1.0j,
    "bool": lambda: True,
    "np.float32": lambda: np.float32(2.0),
    "np.float64": lambda: np.float64(2.0),
    "np.int64": lambda: np.int64(2),
    "list": lambda: [1.0, 2.0],
    "tuple": lambda: (1.0, 2.0),
    "None": lambda: None,
    "str": lambda: "a",
    "object": lambda: object,
    "Unit": Unit,
    "Old": Old,
    "Duck": lambda: Duck(V),
}


def outcome(apply, x, y):
    try:
        return apply(x, y)
    except Exception as error:
        return type(error)


def check(actual, expected):
    if isinstance(expected, type):  # an error
        assert isinstance(actual, type)
    elif isinstance(expected, tuple):
        assert type(actual) is tuple
        for a, b in zip(actual, expected, strict=True):
            check(a, b)
    elif type(expected) is np.ndarray or isinstance(expected, np.generic):
        # A reflected operator of SciPy's or of a user's may give an ndarray.
        assert type(actual) in (Array, type(expected))
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype
    elif scipy.sparse.issparse(expected):
        assert type(actual) is type(expected)
        np.testing.assert_array_equal(actual.toarray(), expected.toarray())
    elif isinstance(expected, Duck):
        assert type(actual) is Duck
        np.testing.assert_array_equal(actual.x, expected.x)
    elif isinstance(expected, scipy.sparse.linalg.LinearOperator):
        assert type(actual) is type(expected)
        check(outcome(operator.matmul, actual, V), outcome(operator.matmul, expected, V))
    elif hasattr(expected, "shape"):
        assert type(actual) is type(expected)
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))
    else:
        assert actual == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FOREIGN)
def test_operators_with_other_objects_are_those_of_ndarray(name):
    other = FOREIGN[name]()
    for plain in (M, V, np.array(2.0)):
        ours = fnp.asarray(plain)
        for kind, apply in OPERATORS.items():
            if not plain.shape and kind in COMPARISONS and (name == "Index" or scipy.sparse.issparse(other)):
                continue  # theirs ask for a number, or for results of ndarrays that they may write to
            if (name, kind) == ("Fraction", "pow"):
                continue  # it makes a float of itself, where NumPy collects its results in an array of objects
            check(outcome(apply, ours, other), outcome(apply, plain, other))
            if (name, kind, plain.ndim) == ("LinearOperator", "truediv", 0):
                continue  # SciPy 1.18 wants ``1.0 / x`` to be a number: with a 0-d ndarray it is, with ours a 0-d Array
            check(outcome(apply, other, ours), outcome(apply, other, plain))


def test_the_object_that_takes_over_receives_the_array():
    x = fnp.asarray(M)
    for other in (Unit(), Old()):
        assert (x * other)[1] is x
        assert (x @ other)[1] is x
    assert (Unit() * x)[1] is x


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_products_with_sparse_matrices(form):
    for kind in ("array", "matrix"):
        sparse = getattr(scipy.sparse, f"{form}_{kind}")(M)
        for dense in (fnp.asarray(M), fnp.asarray(V)):
            np.testing.assert_array_equal(dense @ sparse, np.asarray(dense) @ M)
            np.testing.assert_array_equal(sparse @ dense, M @ np.asarray(dense))


class Foreign:
    """Knows nothing of NumPy: what Python's own numbers would ask of it."""


def _answer(name):
    return lambda self, other: (name, other)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or", "xor",
              "lshift", "rshift"):  # fmt: skip
    setattr(Foreign, f"__r{_name}__", _answer(_name))
for _name, _mirrored in (("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le"), ("eq", "eq"), ("ne", "ne")):
    setattr(Foreign, f"__{_mirrored}__", _answer(_name))


class Refusing:
    """Has the methods of an operand, and leaves everything to the other side."""

    def __radd__(self, other):
        return NotImplemented

    __rmul__ = __rdivmod__ = __gt__ = __eq__ = __radd__


@pytest.mark.parametrize("name", OPERATORS)
def test_an_object_that_is_no_array_receives_the_array_on_its_left(name):
    apply = OPERATORS[name]
    for x in (
        fnp.ones(2, int),
        fnp.ones((), int),
        fnp.ones(0),
        fnp.ones((2, 2), bool),
        fnp.ones(2, "float16"),
    ):
        called, received = apply(x, Foreign())
        assert called == name.rstrip("_")
        assert received is x
    assert apply(ft.jit(lambda: 2)(), Foreign())[0] == name.rstrip("_")
    seen = []

    def f(x):
        seen.append((x, apply(x, Foreign())))
        return x

    for transformed in (ft.jit(f), ft.vmap(f), ft.grad(lambda x: fnp.sum(f(x))), ft.make_jaxpr(f)):
        transformed(np.ones(2))
    for x, (called, received) in seen:
        assert called == name.rstrip("_")
        assert received is x


def test_what_the_object_leaves_to_the_array_is_an_error_or_as_in_numpy():
    other = Refusing()
    for x in (fnp.ones(2), fnp.ones(())):
        with pytest.raises(TypeError):
            _ = x * other
        with pytest.raises(TypeError):
            divmod(x, other)
        with pytest.raises(TypeError):
            _ = x < other
        assert not np.any(x == other)
        with pytest.raises(TypeError):
            ft.jit(lambda t: t * other)(x)
        with pytest.raises(TypeError):
            ft.jit(lambda t: divmod(t, other))(x)
        assert not np.any(ft.jit(lambda t: t == other)(x))
