"""Random programs of primitives on awkward shapes: lowered, they compute what NumPy computes."""

import random

import numpy as np
import pytest

from functrans.core.config import config
from functrans.lowering.host.explain_failure import evaluate_on_host
from functrans.lowering.jaxpr.partition import partition
from functrans.lowering.jaxpr.simplify import simplify
from functrans.lowering.loops.aliasing import schedule
from functrans.lowering.loops.build_loops import build_loops
from functrans.lowering.loops.check import verify
from functrans.lowering.loops.collapse import collapse
from functrans.lowering.loops.outline import outline
from functrans.lowering.loops.plan import plan
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.elementwise.arithmetic import gt_p, max_p, min_p, mul_p, neg_p, select_p, sub_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import cos_p, sin_p, tanh_p
from functrans.primitives.indexing.gather_scatter import gather_p, scatter_add_p, scatter_p
from functrans.primitives.products.dot import dot_general_p
from functrans.primitives.reductions.reduce import argmax_p, argmin_p, reduce_max_p, reduce_min_p
from functrans.primitives.structure.linear import (
    add_p,
    broadcast_in_dim_p,
    reduce_sum_p,
    reshape_p,
    transpose_p,
)
from functrans.primitives.structure.shape import concatenate_p, pad_p, rev_p, slice_p

SHAPES = [
    (), (1,), (3,), (5,), (30,), (0,), (2, 3), (5, 3), (5, 1), (1, 3), (5, 5), (6, 5), (0, 3), (3, 0),
    (2, 1, 3), (4, 5, 3),
]  # fmt: skip
LARGEST = 3000


class Program:
    """Draws equations; each method takes one operand and gives a value, or None where it does not apply."""

    def __init__(self, seed, args):
        self.rng = random.Random(seed)
        self.values = list(args)

    def pick(self, fits=lambda v: v.dtype.kind == "f"):
        actual = [v for v in self.values if fits(v)]
        recent = actual[-6:] if self.rng.random() < 0.7 else actual
        return self.rng.choice(recent) if recent else None

    def unary(self, x):
        return self.rng.choice([tanh_p, sin_p, cos_p, neg_p, exp_p]).bind(tanh_p.bind(x))

    def binary(self, x):
        def fits(v):
            try:
                return v.dtype.kind == "f" and np.prod(np.broadcast_shapes(v.shape, x.shape)) <= LARGEST
            except ValueError:
                return False

        y = self.rng.choice([add_p, sub_p, mul_p, max_p]).bind(x, self.pick(fits))
        return tanh_p.bind(y) if self.rng.random() < 0.3 else y

    def literal(self, x):
        number = np.float64(self.rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, 3.7, -0.0]))
        return self.rng.choice([add_p, mul_p, sub_p]).bind(x, number)

    def reduce(self, x):
        axes = tuple(sorted(self.rng.sample(range(x.ndim), self.rng.randint(min(1, x.ndim), x.ndim))))
        kind = self.rng.choice([reduce_sum_p, reduce_sum_p, reduce_max_p, reduce_min_p])
        if 0 in x.shape or kind is reduce_sum_p:
            return mul_p.bind(reduce_sum_p.bind(x, axes=axes), 0.1)
        return kind.bind(x, axes=axes)

    def extreme(self, x):
        if not x.ndim or 0 in x.shape:
            return None
        return self.rng.choice([argmax_p, argmin_p]).bind(x, axes=(self.rng.randrange(x.ndim),))

    def broadcast(self, x):
        shape = self.rng.choice([s for s in SHAPES if len(s) >= x.ndim] or [x.shape])
        axes = sorted(self.rng.sample(range(len(shape)), x.ndim))
        if any(n not in (1, shape[d]) for n, d in zip(x.shape, axes)):
            return None
        return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(axes))

    def transpose(self, x):
        return transpose_p.bind(x, permutation=tuple(self.rng.sample(range(x.ndim), x.ndim)))

    def reshape(self, x):
        size = int(np.prod(x.shape, dtype=int))
        shapes = [s for s in [*SHAPES, (size,), (size, 1), x.shape[::-1]] if np.prod(s, dtype=int) == size]
        return reshape_p.bind(x, shape=self.rng.choice(shapes))

    def slice(self, x):
        start = [self.rng.randint(0, n) for n in x.shape]
        stop = [self.rng.randint(min(a + 1, n), n) for a, n in zip(start, x.shape)]
        steps = tuple(self.rng.choice([1, 1, 2]) for _ in start)
        return slice_p.bind(x, start_indices=tuple(start), limit_indices=tuple(stop), strides=steps)

    def reverse(self, x):
        return rev_p.bind(x, dimensions=tuple(self.rng.sample(range(x.ndim), self.rng.randint(0, x.ndim))))

    def concatenate(self, x):
        if not x.ndim:
            return None
        d = self.rng.randrange(x.ndim)

        def fits(v):
            others = [n for i, n in enumerate(v.shape) if i != d]
            same = others == [n for i, n in enumerate(x.shape) if i != d]
            return v.dtype.kind == "f" and v.ndim == x.ndim and same

        return concatenate_p.bind(x, self.pick(fits), dimension=d)

    def pad(self, x):
        draw = self.rng.randint
        config = tuple((draw(-1, 2) if n > 3 else draw(0, 2), draw(0, 2), draw(0, 1)) for n in x.shape)
        return pad_p.bind(x, 0.3, padding_config=config)

    def select(self, x):
        return select_p.bind(
            gt_p.bind(x, 0.0), x, self.pick(lambda v: v.dtype.kind == "f" and v.shape == x.shape)
        )

    def product(self, x):
        def fits(v):
            size = np.prod(x.shape[:-1] + v.shape[1:])
            return v.dtype.kind == "f" and v.ndim and v.shape[0] == x.shape[-1] and size <= LARGEST

        y = self.pick(fits) if x.ndim else None
        if y is None:
            return None
        numbers = (((x.ndim - 1,), (0,)), ((), ()))
        return mul_p.bind(dot_general_p.bind(x, y, dimension_numbers=numbers), 0.2)

    def indices(self, n):
        actual = self.pick(lambda v: v.dtype.kind == "i")
        if actual is not None:
            return min_p.bind(actual, np.int64(n - 1))
        return np.array([self.rng.randrange(n) for _ in range(self.rng.choice([1, 4, 7]))])

    def gather(self, x):
        if not x.ndim or not x.shape[0]:
            return None
        return gather_p.bind(x, self.indices(x.shape[0]), axes=(0,), mode=self.rng.choice(["raise", "clip"]))

    def scatter(self, x):
        if not x.ndim or not x.shape[0]:
            return None
        index = np.array([self.rng.randrange(x.shape[0]) for _ in range(4)])
        number = self.pick(lambda v: v.dtype.kind == "f" and v.shape == ())
        wide = {"shape": (4, *x.shape[1:]), "broadcast_dimensions": ()}
        updates = broadcast_in_dim_p.bind(0.7 if number is None else number, **wide)
        return self.rng.choice([scatter_add_p, scatter_p]).bind(x, updates, index, axes=(0,), mode="raise")

    def run(self, length):
        """Equations drawn, and some of the values as outputs."""
        kinds = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.literal, self.reduce,
            self.reduce, self.extreme, self.broadcast, self.transpose, self.reshape, self.slice, self.reverse,
            self.pad, self.select, self.concatenate, self.product, self.gather, self.scatter,
        ]  # fmt: skip
        first = len(self.values)
        for _ in range(length):
            value = self.rng.choice(kinds)(self.pick())
            if value is not None and np.prod(value.shape, dtype=int) <= LARGEST:
                self.values.append(value)
        made = self.values[first:] or self.values
        return [self.rng.choice(made) for _ in range(self.rng.randint(1, 4))]


def make(stage, seed, length):
    numbers = np.random.default_rng(seed)
    shapes = [SHAPES[i] for i in numbers.integers(0, len(SHAPES), numbers.integers(1, 5))]
    args = [np.asarray(numbers.normal(size=s)) for s in shapes]
    return stage(lambda *xs: Program(seed, xs).run(length), *args), args


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
def test_by_python(stage, block):
    for seed in range(50 * block, 50 * block + 50):
        with config.patch(backend="python", specialize_below=2, strict=True):
            compare(*make(stage, seed, 30))


@pytest.mark.parametrize("seed", range(24))
def test_by_llvm(stage, seed):
    # strict: an argmax of nearly equal numbers may not depend on rounding
    with config.patch(backend="llvm", specialize_below=2 if seed % 2 else 16, strict=True):
        compare(*make(stage, 10_000 + seed, 40))


@pytest.mark.parametrize("block", range(4))
def test_every_pass_leaves_a_sound_kernel(stage, block):
    for seed in range(20_000 + 25 * block, 20_025 + 25 * block):
        jaxpr, _ = make(stage, seed, 50)
        for step in partition(simplify(jaxpr)):
            kernel = build_loops(schedule(step.jaxpr)).kernel
            verify(kernel)
            verify(collapse(kernel))
            verify(plan(kernel, 2))
            verify(outline(kernel, 2)[0])


def make_update(stage, seed, length):
    """A program whose arguments and outputs are of one type, and one other output."""
    numbers = np.random.default_rng(seed)
    shape = (5, 5) if numbers.random() < 0.2 else SHAPES[numbers.integers(1, len(SHAPES))]
    args = [np.asarray(numbers.normal(size=shape)) for _ in range(numbers.integers(1, 4))]

    def f(*xs):
        program = Program(seed, xs)
        program.run(length)
        draw = program.rng
        same = [v for v in program.values if v.dtype.kind == "f" and v.size == args[0].size]
        outs = [
            draw.choice(same if draw.random() < 0.2 else same[len(xs) :] or same)
            for _ in range(draw.randint(1, 4))
        ]
        return [*outs, draw.choice(program.values)]

    return stage(f, *args), args


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
    "block", [*range(4), *[pytest.param(n, marks=pytest.mark.slow) for n in range(4, 40)]]
)
def test_donated_inputs_by_python(stage, block):
    with config.patch(backend="python", specialize_below=2, strict=True):
        programs = range(30_000 + 60 * block, 30_060 + 60 * block)
        updated = sum(compare_donated(*make_update(stage, seed, 4 + seed % 12)) for seed in programs)
    assert updated > 10


@pytest.mark.parametrize("seed", range(12))
def test_donated_inputs_by_llvm(stage, seed):
    with config.patch(backend="llvm", specialize_below=2 if seed % 2 else 16, strict=True):
        compare_donated(*make_update(stage, 40_000 + seed, 10))
