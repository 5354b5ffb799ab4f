"""Loops that call mathematical functions spill whole vectors, at multiples of their size."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.processor import processor

X = np.linspace(0.0, 1.0, 1003)
BYTES = processor().vector_bits // 8


def chain(x):
    return fnp.sum(fnp.sin(x)) + fnp.sum(fnp.tanh(x) * fnp.exp(x))


def aligned(f, x):
    """Whether some function of the compiled program aligns its stack."""
    text = ft.jit(f).lower(x).as_text("llvm")
    return any(line.startswith("define") and f"alignstack({BYTES})" in line for line in text.splitlines())


@pytest.mark.skipif(not BYTES, reason="the processor has no vectors of several sizes")
@pytest.mark.parametrize("f", [lambda x: fnp.sum(fnp.sin(x)), chain], ids=["sum of sines", "chain"])
def test_no_spilled_vector_is_in_two_lines(f):
    assert aligned(f, X)
    with ft.config.patch(num_threads=1):
        text = ft.jit(f).lower(X).compile().as_text("asm")
    assert not re.findall(r"vmovup[sd]\s+%[yz]mm\d+, -?\d+\(%rsp\)", text)
    with ft.config.patch(num_threads=2):
        assert aligned(f, np.tile(X, 1000))


def test_other_loops_keep_the_stack_as_it_is():
    assert not aligned(lambda x: fnp.sum(x * x), X)
    np.testing.assert_allclose(
        ft.jit(chain)(X), np.sum(np.sin(X)) + np.sum(np.tanh(X) * np.exp(X)), rtol=1e-13
    )
