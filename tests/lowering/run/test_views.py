"""Other shapes of what host calls read and make are views: no kernel copies, and no two results share memory."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functrans import errors
from functrans.core.primitive import Primitive
from functrans.lowering.jaxpr.partition import HostStep, KernelStep, ViewStep, partition
from functrans.lowering.run import wrapper
from functrans.lowering.run.executable import Executable, compile_jaxpr
from functrans.primitives.elementwise.arithmetic import mul_p
from functrans.primitives.elementwise.identities import barrier_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.structure.linear import add_p, reshape_p, transpose_p
from functrans.runtime.config import config

N = 12
SHAPES = [(12,), (3, 4), (4, 3), (1, 12), (2, 1, 6)]


def backward(x):
    return np.ascontiguousarray(x.reshape(-1)[::-1].reshape(x.shape)) + 1.0


def write_backward(arrays, outs):
    outs[0][...] = backward(arrays[0])


made_p = Primitive("made", lambda x: x, backward)
same_p = Primitive("same_on_host", lambda x: x, lambda x: x)
view_p = Primitive("view_on_host", lambda x: x, lambda x: x[...])
written_p = Primitive("written", lambda x: x, backward, into=write_backward)
HOST = {"made": made_p, "same": same_p, "view": view_p, "written": written_p}


def flat(x):
    return reshape_p.bind(x, shape=(N,))


KINDS = {
    **{f"shape{i}": lambda x, y, s=s: reshape_p.bind(x, shape=s) for i, s in enumerate(SHAPES)},
    "barrier": lambda x, y: barrier_p.bind(x),
    "double": lambda x, y: mul_p.bind(x, 2.0),
    "add": lambda x, y: add_p.bind(flat(x), flat(y)),
    "turned": lambda x, y: transpose_p.bind(reshape_p.bind(x, shape=(3, 4)), permutation=(1, 0)),
    "raises": lambda x, y: gather_p.bind(flat(x), y, axes=(0,), mode="raise"),
    **{name: lambda x, y, p=p: p.bind(x) for name, p in HOST.items()},
}
FREQUENT = [*KINDS, *HOST, *HOST, *[f"shape{i}" for i in range(len(SHAPES))]]
PROGRAMS = st.lists(
    st.tuples(
        st.sampled_from([k for k in FREQUENT if k != "raises"]), st.integers(0, 20), st.integers(0, 20)
    ),
    max_size=10,
)
OUTS = st.lists(st.integers(0, 20), min_size=1, max_size=4)


def program(steps, outs, raises_at=None):
    def f(x, y, i):
        values = [x, y]
        for n, (kind, a, b) in enumerate(steps):
            if n == raises_at:
                values.append(KINDS["raises"](values[-1], i))
            values.append(KINDS[kind](values[-1 - a % len(values)], values[-1 - b % len(values)]))
        return [values[-1 - n % len(values)] for n in outs]

    return f


def arguments(i=0):
    return np.linspace(1.0, 2.0, N), np.linspace(-1.0, 0.0, N).reshape(3, 4), np.arange(N)[::-1] + i


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PROGRAMS, OUTS, st.booleans(), st.booleans(), st.booleans())
def test_results(stage, steps, outs, donates, looks, frees):
    """Like NumPy's, in separate memory; arguments that are not donated stay."""
    jaxpr = stage(program(steps, outs, raises_at=len(steps) // 2), *arguments())
    expected = program(steps, outs, raises_at=len(steps) // 2)(*arguments())
    before, wrapper.LARGE = wrapper.LARGE, 1 if frees else wrapper.LARGE
    try:
        with config.patch(debug_nans=looks):
            executable = Executable(jaxpr, (0, 1) if donates else ())
            for _ in range(2):
                args = arguments()
                results = executable(*args)
                assert len(results) == len(expected)
                for x, y in zip(results, expected):
                    np.testing.assert_array_equal(x, y)
                for x, y in itertools.combinations(results, 2):
                    assert not np.shares_memory(x, y)
                for n, (a, b) in enumerate(zip(args, arguments())):
                    if not donates or n == 2:
                        np.testing.assert_array_equal(a, b)
                        assert not any(np.shares_memory(a, x) for x in results)
                kept = [x.copy() for x in results]
                executable(*arguments())
                for x, y in zip(results, kept):
                    np.testing.assert_array_equal(x, y)
    finally:
        wrapper.LARGE = before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PROGRAMS, OUTS, st.integers(0, 9), st.booleans())
def test_a_failing_kernel(stage, steps, outs, at, frees):
    """NumPy repeats the program with what host calls returned, and says what failed."""
    f = program([*steps, ("double", 0, 0)], outs, raises_at=at % (len(steps) + 1))
    before, wrapper.LARGE = wrapper.LARGE, 1 if frees else wrapper.LARGE
    try:
        executable = Executable(stage(f, *arguments()))
        if any(e.effects.may_raise for e in executable.simplified.eqns):
            with pytest.raises(errors.IndexOutOfBoundsError):
                executable(*arguments(5))
    finally:
        wrapper.LARGE = before
    for x, y in zip(executable(*arguments()), f(*arguments())):
        np.testing.assert_array_equal(x, y)


def kinds(steps):
    names = {HostStep: "host", KernelStep: "kernel", ViewStep: "view"}
    return [names[type(s)] for s in steps]


def test_no_kernel_copies(stage):
    x = np.arange(12.0)

    def f(x):
        y = made_p.bind(reshape_p.bind(x, shape=(3, 4)))
        return reshape_p.bind(written_p.bind(reshape_p.bind(y, shape=(4, 3))), shape=(12,))

    jaxpr = stage(f, x)
    assert kinds(partition(jaxpr)) == ["view", "host", "view", "host", "view"]
    program = compile_jaxpr(jaxpr)
    assert not program.kernels
    assert program.as_text().count("# view:") == 3
    np.testing.assert_array_equal(program(x)[0], x + 2.0)


def test_what_only_a_kernel_reads_is_reshaped_there(stage):
    def f(x):
        y = made_p.bind(x)
        return mul_p.bind(reshape_p.bind(y, shape=(3, 4)), 2.0)

    jaxpr = stage(f, np.arange(12.0))
    assert kinds(partition(jaxpr)) == ["host", "kernel"]
    np.testing.assert_array_equal(
        compile_jaxpr(jaxpr)(np.arange(12.0))[0].ravel(), 2 * (12.0 - np.arange(12))
    )


def test_one_of_several_shapes_is_stored(stage):
    """The kernel writes the elements once; the host reads them in both shapes."""

    def f(x):
        y = mul_p.bind(x, 2.0)
        return made_p.bind(y), made_p.bind(reshape_p.bind(y, shape=(3, 4)))

    x = np.arange(12.0)
    first, *rest = partition(stage(f, x))
    assert len(first.jaxpr.outvars) == 1
    assert kinds(rest) == ["view", "host", "host"]
    for y in compile_jaxpr(stage(f, x))(x):
        np.testing.assert_array_equal(y.ravel(), backward(2 * x))


def test_rounds_that_views_connect_are_one(stage):
    """Reshaping does not part host calls, so what can be one kernel is one."""

    def f(x):
        y = made_p.bind(x)
        z = made_p.bind(reshape_p.bind(y, shape=(3, 4)))
        return add_p.bind(mul_p.bind(y, 2.0), reshape_p.bind(z, shape=(12,)))

    jaxpr = stage(f, np.arange(12.0))
    assert kinds(partition(jaxpr)) == ["host", "view", "host", "kernel"]
