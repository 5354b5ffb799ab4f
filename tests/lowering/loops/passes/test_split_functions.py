"""Kernels in parts: equal parts are shared, and what crosses a cut arrives."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.lowering.backend import Options
from functrans.lowering.loops import check, ir, queries
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.passes import split_functions
from functrans.lowering.loops.passes.split_complex import split_complex
from functrans.lowering.loops.touches import touches_of
from functrans.lowering.run.compile import compile_kernel
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.elementwise.arithmetic import mul_p, sub_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import tanh_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.structure.linear import add_p, broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.runtime.config import config

F8, F4, INT = np.dtype("f8"), np.dtype("f4"), np.dtype("i8")


def layers(dtype, count):
    """Each layer needs the whole of the one before: two loops and a number that crosses them."""

    def f(x):
        for _ in range(count):
            mirrored = tanh_p.bind(add_p.bind(x, transpose_p.bind(x, permutation=(1, 0))))
            total = mul_p.bind(reduce_sum_p.bind(mirrored, axes=(0, 1)), dtype.type(1e-3))
            x = sub_p.bind(mirrored, broadcast_in_dim_p.bind(total, shape=x.shape, broadcast_dimensions=()))
        return x, total

    return f


@pytest.mark.parametrize("dtype", [F8, F4])
def test_equal_layers_are_compiled_once(stage, dtype):
    x = np.random.default_rng(0).normal(size=(20, 20)).astype(dtype)
    expected = x
    for _ in range(12):
        expected = np.tanh(expected + expected.T)
        total = expected.sum() * dtype.type(1e-3)
        expected = expected - total
    executable = compile_jaxpr(stage(layers(dtype, 12), x))
    calls = split_functions.split(executable.kernels[0].kernel)
    assert len(calls) >= 12
    assert len({id(c.part) for c in calls}) <= 5
    outs = executable(x)
    np.testing.assert_allclose(outs[0], expected, rtol=50 * np.finfo(dtype).eps * 100)
    np.testing.assert_allclose(outs[1], total, rtol=1e-3 if dtype == F4 else 1e-10)
    assert executable.kernels[0].llvm.count(".body(ptr noalias") == len({id(c.part) for c in calls})


def test_small_kernels_stay_whole(stage):
    executable = compile_jaxpr(stage(lambda x: exp_p.bind(x), np.ones(3)))
    assert split_functions.split(executable.kernels[0].kernel) is None


def test_failure_in_a_part(stage):
    x, good = np.random.default_rng(0).normal(size=(20, 20)), np.arange(5)

    def f(x, i):
        y, _ = layers(F8, 14)(x)
        return gather_p.bind(y, i, axes=(0,), mode="raise")

    executable = compile_jaxpr(stage(f, x, good))
    assert split_functions.split(executable.kernels[0].kernel) is not None
    assert executable(x, good)[0].shape == (5, 20)
    with pytest.raises(errors.IndexOutOfBoundsError):
        executable(x, good + 18)


def test_statements_that_need_a_value_stay_together(monkeypatch):
    """Booleans, variables and buffers on the stack that several loops use."""
    monkeypatch.setattr(split_functions, "FEWEST", 2)
    b = StatementBuilder("f")
    x, y = b.buffer("x", F8, (8,), "in"), b.buffer("y", F8, (8,), "out")
    s = b.buffer("s", F8, (8,), "stack")
    first = b.load(x, (0,))
    positive = first > 0.0
    total = b.local(b.const(0.0, F8))
    with b.loop(8) as i:
        b.store(s, (i,), b.load(x, (i,)) * 2.0)
    with b.loop(8) as i:
        total.set(total.get() + b.load(s, (i,)))
    with b.loop(8) as i:
        b.store(s, (i,), b.load(s, (i,)) + first)
    mean = total.get() / 8.0
    whole = b.cast(mean, INT)
    narrow = b.cast(mean, F4)
    with b.loop(8) as i:
        b.store(y, (i,), b.where(positive, b.load(s, (i,)) - mean, mean) + b.cast(whole, F8))
    with b.loop(8) as i:
        b.store(y, (i,), b.load(y, (i,)) + b.cast(narrow, F8))
    kernel = b.finish()
    assert len(split_functions.split(kernel)) >= 2
    values = np.linspace(1, 3, 8)
    expected = 2 * values + values[0] - 4 + 4 + 4
    with config.patch(verify=True):
        out = np.empty(8)
        assert compile_kernel(kernel, Options()).run((values, out)) == 0
    np.testing.assert_allclose(out, expected, rtol=1e-14)


@pytest.mark.slow
def test_tapes_keep_the_extents_that_their_room_depends_on(stage, monkeypatch):
    """The size of a record is in no load or store of the part that makes room for it."""
    monkeypatch.setattr(split_functions, "FEWEST", 8)

    def f(x):
        c = lax.fori_loop(0, fnp.sum(x > 0), lambda i, c: c * 0.5 + x / c, x + 1)
        return fnp.trace(x.T @ c)

    x = np.linspace(0.1, 1, 66).reshape(22, 3)
    (unit,) = compile_jaxpr(ft.make_jaxpr(ft.grad(f))(x)).kernels
    calls = split_functions.split(unit.kernel)
    rooms = [(s.tape, c) for c in calls for s in queries.walk(c.part.body) if type(s) is ir.Reserve]
    assert rooms
    for tape, call in rooms:
        their = call.buffers[call.part.buffers.index(tape)]
        assert [call.ints[n.slot] if type(n) is ir.Param else n for n in tape.shape[1:]] == [*their.shape[1:]]
    c = x + 1
    slope = np.ones_like(x)  # of c by x
    for _ in range(66):
        c, slope = c * 0.5 + x / c, slope * 0.5 + 1 / c - x / c**2 * slope
    for _ in range(30):
        np.testing.assert_allclose(ft.jit(ft.grad(f))(x), c + x * slope, rtol=1e-12)


def test_large_kernels_of_complex_numbers(stage):
    def f(x):
        for _ in range(14):
            x = fnp.exp(x.T * 0.1) * 0.3 + fnp.sqrt(x)
        return x

    x = np.random.default_rng(0).normal(size=(20, 20)) * 0.1 + 0.2j
    executable = compile_jaxpr(ft.make_jaxpr(f)(x))
    assert split_functions.split(split_complex(executable.kernels[0].kernel)) is not None
    np.testing.assert_allclose(executable(x)[0], f(x), rtol=1e-12)


@pytest.mark.parametrize("forgotten", [ir.Reserve, ir.Copy, ir.Load, ir.Store, ir.HostCall])
def test_a_forgotten_buffer_is_reported(stage, monkeypatch, forgotten):
    """What `check` is for: a statement whose buffers no plan would know of."""

    def f(x):
        def body(i, c):
            look = ft.pure_callback(np.cos, ft.ShapeDtypeStruct((3,), float), lax.stop_gradient(c[0]))
            return c * 0.5 + x / c + look

        return fnp.sum(lax.fori_loop(0, fnp.sum(x > 0), body, x + 1))

    jaxpr = ft.make_jaxpr(ft.grad(f))(np.ones((22, 3)))
    monkeypatch.setattr(check, "touches_of", lambda s: () if type(s) is forgotten else touches_of(s))
    with config.patch(verify=True), pytest.raises(check.LoopIRError, match="touches_of does not report"):
        compile_jaxpr(jaxpr).compile()


@pytest.mark.parametrize("dtype", [F8, F4])
def test_equal_stages_in_a_loop_are_compiled_once(dtype):
    rng = np.random.default_rng(0)
    w, y = rng.normal(size=(16, 16)).astype(dtype) / 4, rng.normal(size=(40, 16)).astype(dtype)

    def stages(np_, y, factor):
        for _ in range(14):
            y = np_.tanh(y @ w + factor * y)
        return y * np_.sum(y[0])

    compiled = ft.jit(lambda y: lax.fori_loop(0, 3, lambda i, y: stages(fnp, y, dtype.type(0.5)), y))
    expected = y
    for _ in range(3):
        expected = stages(np, expected, dtype.type(0.5))
    np.testing.assert_allclose(compiled(y), expected, rtol=1e-3 if dtype == F4 else 1e-10, atol=1e-5)
    (kernel,) = compile_jaxpr(compiled.lower(y).jaxpr).kernels
    loops = [s for s in kernel.kernel.body.statements if type(s) is ir.For]
    calls = [
        s for loop in loops for s in split_functions.shared(loop.body) if type(s) is split_functions.PartCall
    ]
    assert len(calls) >= 10
    assert len({c.text for c in calls}) <= 3


def test_arrays_that_share_only_a_number_do_not_share_a_loop():
    tree = [np.arange(20.0) + n for n in range(40)]
    compiled = ft.jit(lambda tree, t: [x * (1 - 0.9**t) for x in tree])
    for x, y in zip(tree, compiled(tree, 2.0)):
        np.testing.assert_allclose(y, x * (1 - 0.9**2.0), rtol=1e-15)
    (kernel,) = compile_jaxpr(compiled.lower(tree, 2.0).jaxpr).kernels
    calls = split_functions.split(kernel.kernel)
    assert len(calls) == 40
    assert len({c.text for c in calls}) <= 2


def test_a_part_that_gives_a_number_here_and_writes_an_output_there(monkeypatch):
    monkeypatch.setattr(split_functions, "FEWEST", 2)

    def f(x, y):
        return fnp.broadcast_to(fnp.sum(x), (20,)), fnp.sum(y)

    x, y = np.arange(30.0), np.arange(30.0) + 1
    (unit,) = compile_jaxpr(ft.make_jaxpr(f)(x, y)).kernels
    calls = split_functions.split(unit.kernel)
    equal = [c for c in calls if c.text == calls[0].text]
    assert {len(c.results) for c in equal} == {0, 1}
    for checked in (True, False):
        with config.patch(checked=checked):
            spread, total = ft.jit(f)(x, y)
            assert total == y.sum()
            np.testing.assert_array_equal(spread, np.full(20, x.sum()))
