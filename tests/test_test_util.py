"""check_grads, check_jvp and check_vjp, which find what is wrong."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError
from functrans.test_util import check_grads, check_jvp, check_vjp
from functrans.testing import LawViolation

X = np.array([0.3, -1.2])


def test_right_derivatives_pass():
    check_grads(lambda x, t: fnp.sin(x) * t["a"], (X, {"a": 2.0 * X}), order=2)
    check_grads(fnp.abs, (X.astype(np.float32),), 1, modes="rev")
    check_jvp(fnp.exp, lambda x, t: ft.jvp(fnp.exp, x, t), (X + 1j,))
    check_vjp(lambda x, y: x @ y, lambda x, y: ft.vjp(lambda x, y: x @ y, x, y), (X, X))


@ft.custom_jvp
def wrong(x):
    return fnp.sin(x)


wrong.defjvp(lambda primals, tangents: (wrong(*primals), 2.0 * tangents[0]))


def test_written_as_for_autograd():
    check_grads(lambda x, y: fnp.sin(x) * y, modes=["fwd", "rev"], order=2)(X, 2.0)
    check_grads(lambda x, y: fnp.sin(x) * y, ["fwd", "rev"], 2)(X, 2.0)
    check_grads(fnp.sin, "rev")(X)
    with pytest.raises(AssertionError):
        check_grads(wrong, order=1)(X)
    with pytest.raises(LawViolation):
        check_grads(wrong, ["rev"], 1)(X)
    with pytest.raises(ArgumentValueError, match="modes"):
        check_grads(wrong, ["reverse"], 1)(X)


def test_wrong_derivatives_fail():
    with pytest.raises(AssertionError):
        check_grads(wrong, (X,), 1)
    with pytest.raises(AssertionError, match=r"mine: .*tangents"):
        check_jvp(wrong, lambda x, t: ft.jvp(wrong, x, t), (X,), err_msg="mine")
    with pytest.raises(AssertionError, match="J t"):
        check_vjp(fnp.sin, lambda x: (fnp.sin(x), lambda ct: (2 * ct,)), (X,))
    with pytest.raises(AssertionError, match="values"):
        check_vjp(fnp.sin, lambda x: ft.vjp(fnp.cos, x), (X,))
    with pytest.raises(ft.errors.ArgumentValueError, match="modes"):
        check_grads(fnp.sin, (X,), 1, modes=("forward",))
