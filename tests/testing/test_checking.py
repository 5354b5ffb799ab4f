import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.test_util import check_grads
from functrans.testing import LawViolation, check, gradcheck

X = np.array([0.3, -1.2, 0.8])


def test_smooth_functions_pass():
    check(lambda x, p: fnp.sum(fnp.tanh(x * p["w"]) ** 2), X, {"w": 0.7, "n": 3})
    check(lambda x: fnp.exp(1j * x), X)
    check(fnp.tan, 1.5, order=3)


def test_integers_only():
    check(lambda n: n * 2 + 1, np.arange(3))


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), "fwd", ("fwd", "rev")])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_modes_and_orders(modes, order):
    check(lambda x: fnp.sum(x**3), X, modes=modes, order=order)


def test_kink_is_not_a_wrong_gradient():
    with pytest.raises(LawViolation, match=r"non-differentiable \(kink\)"):
        check(lambda x: fnp.maximum(x, 0.0), np.array([1e-9, 1.0]))
    with pytest.raises(LawViolation, match=r"kink"):  # of the derivative
        check(lambda x: x * fnp.abs(x), np.array(0.0), laws=["jvp_is_slope"])
    check(lambda x: x * fnp.abs(x), np.array(0.0), laws=["jvp_is_slope"], order=1)


def test_no_law_differentiates_more_than_order_times():
    check(lambda x: x * fnp.abs(x), np.array(0.0), order=1)


def test_a_second_order_fault_is_detected():
    def f(x):
        held = fnp.cos(ft.lax.stop_gradient(x))
        return fnp.sin(ft.lax.stop_gradient(x)) + held * (x - ft.lax.stop_gradient(x))

    check(f, X, order=1)
    with pytest.raises(LawViolation):
        check(f, X, order=2)


def test_python_control_flow_without_the_laws_of_jit():
    def f(x):
        return x**2 if x > 0 else -x

    with pytest.raises(LawViolation, match="TracerBoolConversionError"):
        check(f, 2.0)
    check(f, 2.0, laws=["jvp_is_slope", "vjp_is_adjoint", "hessian_is_symmetric"])


def test_unknown_names():
    with pytest.raises(ft.errors.ArgumentValueError, match="unknown law 'linear'"):
        check(fnp.sin, X, laws=["linear"])
    with pytest.raises(ft.errors.ArgumentValueError, match="unknown mode 'forward'"):
        check(fnp.sin, X, modes="forward")


def test_tolerances():
    def noisy(x):
        return fnp.sin(x) + 1e-6 * fnp.where(fnp.asarray(x) > 0, 1.0, 0.0) * ft.lax.stop_gradient(x)

    with pytest.raises(LawViolation, match="finite differences"):
        check(noisy, X, order=1)
    check(noisy, X, order=1, rtol=1e-4, atol=1e-4)


def test_a_backward_alone_is_compared_with_finite_differences():
    """Without forward mode, and where that follows from the same rule."""

    class Wrong(ft.Function):
        @staticmethod
        def forward(x):
            return fnp.sin(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 1.001 * g * fnp.cos(ctx.saved[0])

    x = np.array([0.3, 0.7])
    with pytest.raises(LawViolation, match="vjp = finite differences"):
        check(Wrong.apply, x, modes="rev")
    with pytest.raises(LawViolation, match="vjp = finite differences"):
        check_grads(Wrong.apply, (x,), order=1, modes=["rev"])
    with pytest.raises(LawViolation, match="vjp = finite differences"):
        gradcheck(Wrong.apply, (x,), fast_mode=True, rtol=1e-6, atol=1e-6)
    check(fnp.sin, x, modes="rev")
    check_grads(fnp.sin, (x,), modes=["rev"])
