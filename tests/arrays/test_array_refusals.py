"""Operators and functions of an `Array` that NumPy refuses: typed errors that name the line."""

import operator
import subprocess
import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.arrays.array import wrap
from functrans.errors import ArrayTooLargeError, FunctransError

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture
def x():
    return wrap(X.copy())


A, B = fnp.ones(3), fnp.ones(4)
REFUSED = {
    "add": lambda: A + B,
    "sub of an ndarray": lambda: A - np.ones(4),
    "an ndarray on the left": lambda: np.ones(4) * A,
    "lt": lambda: A < B,
    "eq": lambda: A == B,
    "divmod": lambda: divmod(A, B),
    "matmul": lambda: A @ B,
    "matmul by a number": lambda: A @ 2.0,
    "mul by a list": lambda: A * [1.0, 2.0],
    "in place": lambda: operator.iadd(A, B),
    "dot": lambda: A.dot(B),
    "reshape": lambda: A.reshape(2),
    "index": lambda: A[7],
    "axis": lambda: A.sum(axis=3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_typed_and_name_the_line(name):
    with pytest.raises(FunctransError, match=r"test_array_refusals\.py") as actual:
        REFUSED[name]()
    assert isinstance(actual.value, ValueError | IndexError)


FLOATS, INTEGERS, COMPLEX = np.array([1.0, 2.0]), np.array([1, 2]), np.array([1j, 2.0])
DTYPES_REFUSED = {
    "and": (lambda x, y: x & y, (FLOATS, INTEGERS), errors.DtypeError),
    "or of a number": (lambda x: 2 | x, (FLOATS,), errors.DtypeError),
    "xor with a bool": (lambda x: x ^ True, (FLOATS,), errors.DtypeError),
    "invert": (lambda x: ~x, (FLOATS,), errors.DtypeError),
    "shift": (lambda x: x << 1, (FLOATS,), errors.DtypeError),
    "shift by a list": (lambda x: x >> [1, 2], (FLOATS,), errors.DtypeError),
    "mod": (lambda x, y: x % y, (FLOATS, COMPLEX), errors.DtypeError),
    "floordiv": (lambda x: x // 1j, (FLOATS,), errors.DtypeError),
    "divmod": (lambda x, y: divmod(x, y), (COMPLEX, FLOATS), errors.DtypeError),
    "minus of bools": (lambda x: -x, (FLOATS > 1,), errors.DtypeError),
    "plus of bools": (lambda x: +x, (FLOATS > 1,), errors.DtypeError),
    "difference of bools": (lambda x, y: x - y, (FLOATS > 1, FLOATS > 0), errors.DtypeError),
    "a scalar of NumPy on the left": (lambda x: np.float64(1.0) ^ x, (INTEGERS,), errors.DtypeError),
    "negative power": (lambda x, y: x**y, (INTEGERS, np.array(-1)), errors.ArgumentValueError),
    "power of a number": (lambda x: x**-1, (INTEGERS,), errors.ArgumentValueError),
}


@pytest.mark.parametrize("case", DTYPES_REFUSED)
def test_operators_refuse_dtypes_as_functions_do(case):
    f, operands, kind = DTYPES_REFUSED[case]
    with pytest.raises(kind) as caught:
        f(*map(fnp.asarray, operands))
    assert "test_array_refusals.py" in str(caught.value)


def test_weak_numbers_refuse_too():
    for f in (lambda x: x & 1, lambda x: ~x, lambda x: [1, 2] << x, lambda x: np.array([1, 2]) | x):
        with pytest.raises(errors.DtypeError):
            f(fnp.sin(1.0))


def test_errors_of_the_elements_of_an_object_array_are_their_own():
    class Odd:
        def __radd__(self, other):
            raise TypeError("mine")

    for other in (Odd(), np.array([Odd(), Odd()])):
        with pytest.raises(TypeError, match="mine"):
            fnp.asarray(FLOATS) + other


@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_arrays_that_fit_into_no_memory(run):
    for f in (
        lambda x: x * fnp.zeros((2**43, 1)),
        lambda x: fnp.zeros(2**44),
        lambda x: fnp.sum(fnp.sort(fnp.zeros(2**44))),
    ):
        with pytest.raises(ArrayTooLargeError, match=r"TiB.*shape.*\n.*test_array_refusals\.py"):
            run(f)(np.ones(2))


def test_more_axes_than_numpy_has():
    wide = np.ones((1,) * 40 + (2,))
    for f in (lambda x: x + np.ones(2), lambda x: fnp.sum(x * x[..., :1], axis=40)):
        expected = f(wide)
        np.testing.assert_array_equal(ft.jit(f)(wide), expected)
    for f in (lambda x: fnp.tensordot(x, x, 0), lambda x: x[(None,) * 24]):
        for run in (f, ft.jit(f)):
            with pytest.raises(FunctransError, match="64"):
                run(fnp.asarray(wide))


@pytest.mark.parametrize(
    "call",
    [
        "fnp.ones(4).astype('bfloat16')",
        "fnp.ones(4).astype(dtype='bfloat16')",
        "fnp.ones(4).sum(dtype='bfloat16')",
        "fnp.ones(4).view('bfloat16')",
        "functrans.ShapeDtypeStruct((4,), 'bfloat16')",
    ],
)
def test_bfloat16_by_name_in_a_fresh_process(call):
    """NumPy knows the name only once ml_dtypes is loaded."""
    pytest.importorskip("ml_dtypes")
    program = f"import functrans\nimport functrans.numpy as fnp\nprint(({call}).dtype)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "bfloat16", run.stderr
