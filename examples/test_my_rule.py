"""Tests of a derivative rule, for pytest: ``pytest examples/test_my_rule.py``.

Copy this file, put your rule in place of `LogCosh`, and leave out what does not apply. With functrans installed, pytest
has the fixture ``check_derivatives``; ``--functrans-examples 20`` tests at more points. docs/testing.md explains
each test.
"""

import numpy as np
import pytest
from hypothesis import given, settings

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import arrays, check, check_custom_rule, domains, given_op, in_axes_for, programs


class LogCosh(ft.Function):
    """``log(cosh(x))`` without overflow; its derivative is ``tanh(x)``."""

    @staticmethod
    def forward(x):
        """At 1000 the hyperbolic cosine overflows, and this does not."""
        return fnp.abs(x) + fnp.log1p(fnp.exp(-2.0 * fnp.abs(x))) - np.log(2.0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep the argument: what `backward` computes from it has derivatives, too."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        """The cotangent times the derivative."""
        (x,) = ctx.saved
        return g * fnp.tanh(x)


log_cosh = LogCosh.apply
POINT = np.array([0.3, -1.2, 0.7])


@pytest.mark.derivatives(order=2)
def test_derivatives(check_derivatives):
    """All laws, at this point and at those around it; a failure is made small."""
    check_derivatives(log_cosh, POINT)


def test_the_rule():
    """What only rules can break: zero cotangents, missing ones, batches of gradients."""
    check_custom_rule(LogCosh, POINT)


def test_a_batch_at_second_order():
    """Under `vmap` a rule can take another path. Test what is used, at the order at which it is used."""
    check(ft.vmap(log_cosh), np.stack([POINT, 2.0 * POINT]), order=2)


@given_op(log_cosh, domain=domains.away_from(0.0, margin=0.05, low=-3.0, high=3.0), max_examples=5)
def test_shapes(x):
    """Random shapes and numbers; Hypothesis shrinks what fails. At 0 the forward pass has the kinks of `abs`."""
    check(log_cosh, x, order=1, laws=["jvp_is_slope", "vjp_is_adjoint"])


@settings(max_examples=5)
@given(in_axes_for(POINT))
def test_batch_axes(drawn):
    """`vmap` over any axis equals a loop."""
    in_axes, (x,) = drawn
    axis = in_axes[0] % x.ndim
    rows = [np.asarray(log_cosh(row)) for row in np.moveaxis(x, axis, 0)]
    np.testing.assert_allclose(ft.vmap(log_cosh, in_axes)(x), np.reshape(rows, (len(rows), 3)), rtol=1e-12)


@settings(max_examples=3)
@given(programs(1, using={log_cosh: 1}, max_steps=3))
def test_in_company(f):
    """The rule among other operations, in whatever order."""
    check(f, np.array([0.4, 0.9]), order=1, laws=["jvp_is_slope", "vjp_is_adjoint"])


@settings(max_examples=5)
@given(arrays((4,)))
def test_values(x):
    """The values, beside NumPy's."""
    np.testing.assert_allclose(log_cosh(x), np.log(np.cosh(x)), rtol=1e-12, atol=1e-15)


def test_large_arguments():
    """Why there is a rule."""
    assert ft.grad(log_cosh)(1000.0) == 1.0
