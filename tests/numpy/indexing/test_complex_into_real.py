"""Functions that write into an array refuse complex values for a real one, eagerly and compiled alike."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import DtypeError

X = np.arange(3.0)
METHODS = ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))
#: How a value is written into `x`.
WRITERS = {
    **{f"at.{m}": lambda x, v, m=m: getattr(x.at[0], m)(v) for m in METHODS},
    **{f"at.{m} of places": lambda x, v, m=m: getattr(x.at[np.array([0, 2])], m)(v) for m in METHODS},
    **{f"at.{m} under a mask": lambda x, v, m=m: getattr(x.at[x > 0], m)(v) for m in METHODS},
    "at.apply": lambda x, v: x.at[0].apply(lambda y: y + v),
    "at.apply under a mask": lambda x, v: x.at[x > 0].apply(lambda y: y + v),
    "put": lambda x, v: fnp.put(x, [0], v, inplace=False),
    "place": lambda x, v: fnp.place(x, x > 1, fnp.asarray(v)[None], inplace=False),
    "putmask": lambda x, v: fnp.putmask(x, x > 1, v, inplace=False),
    "put_along_axis": lambda x, v: fnp.put_along_axis(x, np.array([0]), v, 0, inplace=False),
    "fill_diagonal": lambda x, v: fnp.fill_diagonal(x[:, None] * x, v, inplace=False),
    "insert": lambda x, v: fnp.insert(x, 0, v),
    "pad": lambda x, v: fnp.pad(x, 1, constant_values=v),
    "pad with two": lambda x, v: fnp.pad(x, 1, constant_values=(0.0, v)),
    "dynamic_update_slice": lambda x, v: lax.dynamic_update_slice(x, fnp.asarray(v)[None], (0,)),
    "dynamic_update_index_in_dim": lambda x, v: lax.dynamic_update_index_in_dim(x, v, 0, 0),
    "scatter": lambda x, v: lax.scatter(x, np.array([[0]]), fnp.asarray(v)[None], ROWS),
    "scatter_add": lambda x, v: lax.scatter_add(x, np.array([[0]]), fnp.asarray(v)[None], ROWS),
}
#: Values by what they are made of, from a real one: a number, a scalar, a computed one.
VALUES = {
    "number": lambda x: 2j,
    "scalar": lambda x: np.complex128(2j),
    "array": lambda x: np.array(2j),
    "computed": lambda x: x[1] * 2j,
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_complex_value_is_refused(writer, value):
    f = lambda x: WRITERS[writer](x, VALUES[value](x))
    for form in (f, ft.jit(f), ft.grad(lambda x: fnp.sum(f(x)))):
        with pytest.raises(DtypeError, match=r"complex"):
            form(fnp.asarray(X))


@pytest.mark.parametrize("writer", WRITERS)
def test_the_real_part_is_not(writer):
    f = lambda x: WRITERS[writer](x, fnp.real(VALUES["computed"](x)))
    np.testing.assert_array_equal(f(fnp.asarray(X)), ft.jit(f)(X))


def test_in_arrays_that_can_hold_it():
    for f in (lambda x: x.at[0].set(2j), ft.jit(lambda x: x.at[0].set(2j))):
        np.testing.assert_array_equal(f(fnp.asarray(X + 0j)), [2j, 1, 2])
        np.testing.assert_array_equal(f(fnp.asarray(X > 5)), [True, False, False])


def test_the_value_for_indices_beyond_the_end():
    for f in (fnp.asarray(X).at[7], fnp.asarray(X.astype("i4")).at[7]):
        with pytest.raises(DtypeError, match="fill_value: a complex value"):
            f.get(mode="fill", fill_value=2j)
