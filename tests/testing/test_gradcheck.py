"""`gradcheck` and `gradgradcheck` as PyTorch has them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import LawViolation, gradcheck, gradgradcheck

X = np.array([0.5, 2.0, -1.25])
EVERYTHING = {
    "check_forward_ad": True,
    "check_batched_grad": True,
    "check_batched_forward_grad": True,
    "check_grad_dtypes": True,
    "masked": False,
}


def scaled_square(factor):
    f = ft.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (factor * ct * x,))
    return f


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (lambda x, y: (fnp.sin(x) * y, fnp.sum(x)), (X, np.array([[1.0], [2.0]]))),
        (lambda x: fnp.exp(1j * x), X),
        (lambda z: fnp.abs(z) ** 2, X + 0.5j),
        (lambda z: z * fnp.conj(z) * 1j, X + 0.5j),
        (lambda tree, n: tree["a"] ** 2 * n, ({"a": X}, np.array(3))),
        (lambda x: fnp.sum(x**3), np.array(0.3)),
        (lambda x: x * 2.0, np.zeros((0, 2))),
        (lambda x: fnp.cumsum(x), np.broadcast_to(0.3, (3,))),
        (scaled_square(2.0), X),
    ],
)
def test_right_gradients(f, inputs, fast):
    assert gradcheck(f, inputs, fast_mode=fast, **EVERYTHING) is True
    assert gradgradcheck(f, inputs, fast_mode=fast, check_batched_grad=True) is True
    assert gradgradcheck(f, inputs, fast_mode=True, gen_non_contig_grad_outputs=True) is True


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_gradient(fast):
    f = scaled_square(3.0)
    with pytest.raises(LawViolation, match=r"(gradients|vjp) = finite differences"):
        gradcheck(f, X, fast_mode=fast)
    assert gradcheck(f, (X,), fast_mode=fast, raise_exception=False) is False
    assert gradcheck(f, X, fast_mode=fast, check_backward_ad=False)


def test_the_element_is_named():
    f = ft.custom_vjp(lambda x, y: x + y)
    f.defvjp(lambda x, y: (x + y, None), lambda _, ct: (ct, ct * fnp.asarray([1.0, 1.0, 2.0])))
    with pytest.raises(LawViolation, match=r"element \(2,\), in argument 1") as actual:
        gradcheck(f, (X, X))
    assert "functrans.testing.gradcheck" in str(actual.value)


def test_written_as_for_torch():
    assert gradcheck(scaled_square(2.0), X, eps=1e-6, atol=1e-4)
    assert gradgradcheck(fnp.sin, (X,), eps=1e-6, atol=1e-4)


def test_wrong_second_derivative_only():
    f = ft.custom_vjp(lambda x: fnp.sin(x))
    f.defvjp(lambda x: (fnp.sin(x), ft.lax.stop_gradient(x)), lambda x, ct: (ct * fnp.cos(x),))
    assert gradcheck(f, X)
    with pytest.raises(LawViolation):
        gradgradcheck(f, X)
    with pytest.raises(LawViolation):
        gradgradcheck(f, X, np.ones(3))


def test_gradient_that_ignores_the_cotangent():
    f = ft.custom_vjp(lambda x: fnp.sum(x))
    f.defvjp(lambda x: (fnp.sum(x), x), lambda x, ct: (fnp.ones_like(x),))
    with pytest.raises(LawViolation, match="not multiplied by the cotangent"):
        gradcheck(f, X)
    assert gradcheck(f, X, check_undefined_grad=False)


def test_nothing_to_differentiate():
    with pytest.raises(ValueError, match="it has no gradient"):
        gradcheck(lambda n: n * 2, np.array([1, 2]))
    with pytest.raises(ValueError, match="it has no gradient"):
        gradcheck(lambda x: x > 0, X)


def test_tangents_that_are_wrong_in_batches_alone():
    class Doubled(ft.Function):
        """Twice the number, whose tangents are wrong where there are several."""

        @staticmethod
        def forward(ctx, x):
            return 2.0 * x

        @staticmethod
        def jvp(ctx, t):
            return Tangent.apply(t)

    class Tangent(ft.Function):
        @staticmethod
        def forward(ctx, t):
            return 2.0 * t

        @staticmethod
        def vmap(info, in_dims, t):
            return 3.0 * t, in_dims[0]

    options = {"check_forward_ad": True, "check_backward_ad": False}
    x = np.array([0.3, 0.7])
    assert gradcheck(Doubled.apply, x, **options)
    with pytest.raises(LawViolation, match="vmap of the tangent = loop"):
        gradcheck(Doubled.apply, x, **options, check_batched_forward_grad=True)
