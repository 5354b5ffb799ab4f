"""Loops as LLVM text: LLVM has nothing to say about them, and is told of the widths that it can use."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, random
from functrans.lowering.processor import processor
from functrans.lowering.run.executable import compile_jaxpr

KEY = random.key(0)


def next_key(key):
    return random.split(key)[0]


KEYS_IN_LOOPS = {
    "a key that is split": lambda k: lax.fori_loop(0, 100, lambda i, k: random.split(k)[0], k),
    "a key, and draws": lambda k: lax.scan(lambda k, _: (random.split(k)[0], random.normal(k)), k, None, 100),
    "until a draw is large": lambda k: lax.while_loop(
        lambda k: random.uniform(k) < 0.9, lambda k: random.split(k)[0], k
    ),
}
DRAWS = {
    "draws": lambda k: random.normal(k, (1000,)),
    "a sum of draws": lambda k: fnp.sum(random.normal(k, (1000,))),
    "sums of columns": lambda k: fnp.sum(random.uniform(k, (100, 100)), 0),
    "the largest draw": lambda k: fnp.max(random.uniform(k, (1000,))),
}


def text_of(f):
    (unit,) = compile_jaxpr(ft.make_jaxpr(f)(KEY)).kernels
    return unit.code.llvm


@pytest.mark.parametrize("name", KEYS_IN_LOOPS)
def test_llvm_reports_nothing(name, capfd):
    """It would on the process's standard error, if a loop whose iterations depend on each other had a width."""
    f = KEYS_IN_LOOPS[name]
    assert "vectorize.width" not in text_of(f)
    compiled = ft.jit(lambda k: f(k))(KEY)
    with ft.disable_jit():
        eager = f(KEY)
    for a, b in zip(ft.tree.leaves(compiled), ft.tree.leaves(eager)):
        if ft.dtypes.issubdtype(a.dtype, np.floating):
            np.testing.assert_allclose(a, b, rtol=1e-14)
        else:
            assert np.array_equal(random.key_data(a), random.key_data(b))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", DRAWS)
def test_draws_fill_vectors_of_32_bits(name):
    assert ("vectorize.width" in text_of(DRAWS[name])) == bool(processor().vector_bits)
