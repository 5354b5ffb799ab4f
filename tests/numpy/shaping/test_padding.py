"""pad in all modes against NumPy's, with derivatives."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

A = np.array([[1.0, 4.0, 2.0], [8.0, -5.0, 7.5]])
MODES = {
    "linear_ramp": {},
    "linear_ramp to ends": {"end_values": ((1, 2), (3, -4))},
    "mean": {},
    "mean of two": {"stat_length": 2},
    "maximum": {},
    "minimum": {"stat_length": ((1, 2), (2, 9))},
    "median": {},
    "median of two": {"stat_length": (2, 1)},
    "reflect": {},
    "reflect odd": {"reflect_type": "odd"},
    "symmetric": {},
    "symmetric odd": {"reflect_type": "odd"},
    "edge": {},
    "wrap": {},
    "constant": {"constant_values": ((1, 2), (3, 4))},
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("case", MODES)
def test_modes(same, case):
    mode, options = case.split()[0], MODES[case]
    for x in (A, (A * 10).astype(int), A.astype(np.float32), A[:, ::-2], A + 1j * A[::-1]):
        for width in (2, ((0, 3), (2, 1)), ((5, 0), (0, 11))):
            if x.dtype.kind == "c" and mode in ("median", "maximum", "minimum"):
                continue
            same("pad", x, width, mode, **options)
    if not isinstance(
        options.get("end_values", options.get("stat_length", options.get("constant_values", 0))), tuple
    ):
        same("pad", A[0], (3, 4), mode, **options)
    same("pad", A[:1, :1], 2, mode, **options)
    np.testing.assert_allclose(
        ft.jit(lambda x: np.pad(x, ((1, 2), (4, 0)), mode, **options))(A),
        np.pad(A, ((1, 2), (4, 0)), mode, **options),
    )
    check(lambda x: fnp.pad(x, ((1, 2), (4, 0)), mode, **options) ** 2, A)


@pytest.mark.slow
def test_numbers_have_derivatives():
    check(lambda x, v: fnp.pad(x, 2, "linear_ramp", end_values=v), A, np.array([1.0, 2.0]))
    check(lambda x, v: fnp.pad(x, 2, constant_values=v), A, np.array([1.0, 2.0]))
    check(lambda x, v: fnp.pad(x, 2, constant_values=v), A, 3.0)


def test_empty_axes(same):
    for mode in ("constant", "edge", "mean", "reflect", "linear_ramp"):
        same("pad", np.zeros((0, 2)), ((0, 0), (1, 1)), mode)
        same("pad", np.zeros((0, 2)), 1, mode)


@pytest.mark.slow
def test_a_function():
    def ours(vector, width, axis, kwargs):
        lo, hi = width
        vector = vector.at[:lo].set(kwargs["value"] + axis)
        return vector.at[len(vector) - hi :].set(-vector[lo])

    def numpys(vector, width, axis, kwargs):
        lo, hi = width
        vector[:lo] = kwargs["value"] + axis
        vector[len(vector) - hi :] = -vector[lo]

    expected = np.pad(A, ((1, 2), (2, 1)), numpys, value=7.0)
    np.testing.assert_array_equal(fnp.pad(A, ((1, 2), (2, 1)), ours, value=7.0), expected)
    np.testing.assert_array_equal(ft.jit(lambda x: np.pad(x, ((1, 2), (2, 1)), ours, value=7.0))(A), expected)
    check(lambda x: fnp.pad(x, 1, ours, value=7.0), A)
    with pytest.raises(errors.ArgumentError, match="must return"):
        fnp.pad(A, 1, lambda vector, *rest: None)


def test_errors(same):
    same("pad", A, 1, "median", reflect_type="odd")
    same("pad", A, 1, "unknown")
    same("pad", A, 1, "maximum", stat_length=0)
    same("pad", A, 1, "maximum", stat_length=-1)
    same("pad", A, 1, "linear_ramp", end_values=(1, 2, 3))
    same("pad", A, ((1, 2), (3, 4), (5, 6)))
    with pytest.raises(errors.ArgumentValueError, match="reflect_type"):
        fnp.pad(A, 1, "reflect", reflect_type="other")
