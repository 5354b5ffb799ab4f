"""Loops of unknown length, differentiated: what is beyond the random programs of tests/properties."""

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


def _spread_out(p):
    """A vector that grows until it is long."""
    return lax.while_loop(lambda s: fnp.sum(s**2) < 30.0, lambda s: s * p + fnp.roll(s, 1) * 0.3, p)[0]


def _spread_out_by_python(p):
    s = p
    while fnp.sum(s**2) < 30.0:
        s = s * p + fnp.roll(s, 1) * 0.3
    return s[0]


def test_third_derivatives_add_cotangents_of_tapes():
    p = np.array([1.1, 0.7, 1.3])
    expected = ft.jacfwd(ft.jacfwd(ft.jacrev(_spread_out_by_python)))(p)
    reverse = ft.jacrev(ft.jacrev(ft.jacrev(_spread_out)))
    for f in (reverse, ft.jit(reverse), ft.jacfwd(ft.jacfwd(ft.jacrev(_spread_out)))):
        np.testing.assert_allclose(f(p), expected, rtol=1e-11, atol=1e-12)
    with ft.disable_jit():
        np.testing.assert_allclose(reverse(p), expected, rtol=1e-11, atol=1e-12)
