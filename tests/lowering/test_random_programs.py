"""Random programs on awkward shapes: lowered, they compute what NumPy computes."""

from dataclasses import replace

import numpy as np
import pytest
from generator.choices import Seeded
from generator.drawing import NUMPY, STRAIGHT, draw_program
from generator.records import KINDS, Block

import functrans as ft
from functrans.lowering.host.explain_failure import evaluate_on_host
from functrans.lowering.jaxpr.partition import partition
from functrans.lowering.jaxpr.simplify import simplify
from functrans.lowering.loops.check import verify
from functrans.lowering.loops.from_jaxpr.aliasing import schedule
from functrans.lowering.loops.from_jaxpr.build_loops import build_loops
from functrans.lowering.loops.passes.collapse import collapse
from functrans.lowering.loops.passes.outline import outline
from functrans.lowering.loops.passes.plan import plan
from functrans.lowering.loops.passes.versions import with_versions
from functrans.lowering.run.executable import compile_jaxpr
from functrans.runtime.config import config

SHAPES = [
    (), (1,), (3,), (5,), (30,), (0,), (2, 3), (5, 3), (5, 1), (1, 3), (5, 5), (6, 5), (0, 3), (3, 0),
    (2, 1, 3), (4, 5, 3),
]  # fmt: skip
LARGEST = 3000
WEIGHTS = {n: w for n, w in STRAIGHT.items() if not {"control", "host", "once", "single"} & KINDS[n].flags}


def drawn(seed, length, args):
    """A program of many statements, and some of its values as outputs."""
    choose = Seeded(seed)
    program = draw_program(choose, WEIGHTS, length, 0, args, LARGEST)
    made = range(len(args), len(args) + len(program.statements)) or (0,)
    return replace(program, outs=tuple(choose.of(made) for _ in range(choose.integer(1, 4))))


def make(seed, length):
    numbers = np.random.default_rng(seed)
    shapes = [SHAPES[i] for i in numbers.integers(0, len(SHAPES), numbers.integers(1, 5))]
    args = [np.asarray(numbers.normal(size=s)) for s in shapes]
    return ft.make_jaxpr(drawn(seed, length, args))(*args).jaxpr, args


def compare(jaxpr, args):
    before = [a.copy() for a in args]
    expected = [np.array(x) for x in evaluate_on_host(jaxpr, args)]
    executable = compile_jaxpr(jaxpr)
    for _ in range(2):
        for a, b in zip(executable(*args), expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    for a, b in zip(args, before):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("block", range(8))
def test_by_python(block):
    for seed in range(50 * block, 50 * block + 50):
        with config.patch(backend="python", specialize_below=2, strict=True):
            compare(*make(seed, 30))


@pytest.mark.parametrize("seed", range(24))
def test_by_llvm(seed):
    # strict: an argmax of nearly equal numbers may not depend on rounding
    with config.patch(backend="llvm", specialize_below=2 if seed % 2 else 16, strict=True):
        compare(*make(10_000 + seed, 40))


@pytest.mark.parametrize("block", range(4))
def test_every_pass_leaves_a_sound_kernel(block):
    for seed in range(20_000 + 25 * block, 20_025 + 25 * block):
        jaxpr, _ = make(seed, 50)
        for step in partition(simplify(jaxpr)):
            loops = build_loops(schedule(step.jaxpr))
            kernel = loops.kernel
            verify(kernel)
            verify(with_versions(kernel, loops.facts))
            verify(collapse(kernel))
            verify(plan(kernel, 2))
            verify(outline(kernel, 2)[0])


def make_update(seed, length):
    """A program whose arguments and outputs are of one type, and one other output."""
    numbers = np.random.default_rng(seed)
    shape = (5, 5) if numbers.random() < 0.2 else SHAPES[numbers.integers(1, len(SHAPES))]
    args = [np.asarray(numbers.normal(size=shape)) for _ in range(numbers.integers(1, 4))]
    program, choose = drawn(seed, length, args), Seeded(seed)
    values = [np.asarray(v) for v in Block(program.statements, ()).values(NUMPY, args, ())]
    same = [i for i, v in enumerate(values) if v.dtype.kind == "f" and v.size == args[0].size]
    outs = [
        choose.of(same if choose.chance(20) else same[len(args) :] or same)
        for _ in range(choose.integer(1, 4))
    ]
    program = replace(program, outs=(*outs, choose.integer(0, len(values) - 1)))
    return ft.make_jaxpr(program)(*args).jaxpr, args


def compare_donated(jaxpr, args):
    """Equal results in memory of their own, whatever is overwritten; returns how many inputs were."""
    expected = compile_jaxpr(jaxpr)(*args)
    executable = compile_jaxpr(jaxpr, tuple(range(len(args)))).compile()
    outs = executable(*[a.copy() for a in args])
    for a, b in zip(outs, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(outs) for b in outs[:i])
    return sum(len(kernel.updates) for kernel in executable.kernels)


@pytest.mark.parametrize(
    "block", [*range(4), *[pytest.param(n, marks=pytest.mark.slow) for n in range(4, 20)]]
)
def test_donated_inputs_by_python(block):
    with config.patch(backend="python", specialize_below=2, strict=True):
        programs = range(30_000 + 60 * block, 30_060 + 60 * block)
        updated = sum(compare_donated(*make_update(seed, 4 + seed % 12)) for seed in programs)
    assert updated > 10


@pytest.mark.parametrize("seed", range(12))
def test_donated_inputs_by_llvm(seed):
    with config.patch(backend="llvm", specialize_below=2 if seed % 2 else 16, strict=True):
        compare_donated(*make_update(40_000 + seed, 10))
