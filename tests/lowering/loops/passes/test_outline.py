"""Extents become parameters: which share one."""

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.backend import Options
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.passes.outline import outline
from functrans.lowering.lower import lower
from functrans.runtime.config import config

F8 = np.dtype("f8")


def test_declarations_of_one_memory_have_the_same_extents():
    """So their elements have the same addresses to LLVM, too: it vectorises a loop over both without a check."""
    b = StatementBuilder("f")
    shape = (3, 100)
    x = b.buffer("x", F8, shape, "scratch")
    b.buffer("again", F8, shape, "scratch", x.place)
    b.buffer("other", F8, shape, "scratch")
    b.buffer("turned", F8, (100, 3), "scratch", x.place)
    kernel, ints = outline(b.finish(), 16)
    of_x, again, other, turned = [d.shape for d in kernel.buffers]
    assert of_x == again == (3, of_x[1])
    assert type(of_x[1]) is ir.Param
    assert len({of_x[1], other[1], turned[0]}) == 3
    assert ints == (100, 100, 100)


def test_the_rows_of_a_regression_on_threads():
    """What a block of rows computes takes the memory of what it reads, also where each thread has its own."""

    def loss(w, x, y):
        z = x @ w
        return fnp.sum(fnp.logaddexp(0.0, z) - y * z)

    large = lambda *shape: np.broadcast_to(np.ones(()), shape)
    with config.patch(num_threads=2, checked=False):
        jaxpr = ft.jit(ft.value_and_grad(loss)).lower(large(40), large(1_000_000, 40), large(1_000_000)).jaxpr
        (step,) = lower(jaxpr, Options()).steps
    own = [b for b in step.kernel.buffers if b.name.endswith("_rows_rows")]
    assert [len({b.place for b in own}), len({b.shape[1:] for b in own}), len(own)] == [1, 1, 2]
