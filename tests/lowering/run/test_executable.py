"""Executables: arguments of every kind, host calls, failures, threads, what stays alive."""

import gc
import threading
import weakref

import numpy as np
import pytest

import functrans as ft
from functrans import errors, lax
from functrans.core.aval import Aval
from functrans.core.ir import Eqn, Jaxpr
from functrans.core.primitive import Effect, Primitive
from functrans.errors.source import user_source
from functrans.experimental import checkify
from functrans.lowering.jaxpr.partition import HostStep, KernelStep, partition
from functrans.lowering.run import executable
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.elementwise.arithmetic import mul_p, neg_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.structure.linear import add_p, broadcast_in_dim_p, reduce_sum_p
from functrans.primitives.structure.shape import slice_p
from functrans.runtime.config import config
from functrans.transforms.stage import stage

sort_p = Primitive("sort", lambda x: x, lambda x: np.sort(x))
view_p = Primitive("view", lambda x: x, lambda x: x)


@pytest.fixture(autouse=True)
def _by_python():
    with config.patch(backend="python"):
        yield


def test_arguments_of_any_layout(stage):
    base = np.arange(48.0).reshape(6, 8)
    misaligned = np.zeros(8 * 12 + 1, np.uint8)[1:].view("f8").reshape(3, 4)
    misaligned[:] = np.arange(12.0).reshape(3, 4)
    read_only = np.arange(12.0).reshape(3, 4)
    read_only.flags.writeable = False
    executable = compile_jaxpr(stage(lambda x: mul_p.bind(x, 2.5), np.ones((3, 4))))
    views = [base[::2, ::2], base[:3, :4][::-1, ::-1], base[:4, :3].T, np.broadcast_to(base[0, :4], (3, 4))]
    for x in (*views, misaligned, read_only, np.asfortranarray(read_only)):
        before = x.copy()
        np.testing.assert_array_equal(executable(x)[0], before * 2.5)
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.array(2.0)])
def test_scalars(stage, x):
    executable = compile_jaxpr(stage(lambda x: mul_p.bind(x, 1.5), np.array(1.0)))
    (out,) = executable(x)
    assert type(out) is np.ndarray
    assert (out.shape, out.dtype, out[()]) == ((), np.float64, 3.0)


def test_no_arguments_and_no_results(stage):
    assert compile_jaxpr(stage(lambda: ()))() == []
    (out,) = compile_jaxpr(stage(lambda: broadcast_in_dim_p.bind(4.5, shape=(3,), broadcast_dimensions=())))()
    np.testing.assert_array_equal(out, [4.5] * 3)


def test_results_are_new_each_time(stage):
    x = np.ones(4)
    executable = compile_jaxpr(stage(lambda x: (neg_p.bind(x), x), x))
    first, second = executable(x), executable(x)
    first[0][:] = 7
    first[1][:] = 8
    np.testing.assert_array_equal(second[0], -x)
    np.testing.assert_array_equal(x, np.ones(4))


def test_captured_arrays(stage):
    c = np.arange(6.0)[::2]
    executable = compile_jaxpr(stage(lambda x: (add_p.bind(x, c), c), np.ones(3)))
    for _ in range(2):
        total, same = executable(np.ones(3))
        np.testing.assert_array_equal(total, [1, 3, 5])
        np.testing.assert_array_equal(same, [0, 2, 4])
        same[:] = -1


def test_host_calls_between_kernels(stage):
    def f(x):
        y = sort_p.bind(exp_p.bind(x))
        return mul_p.bind(y, x), y, sort_p.bind(neg_p.bind(y))

    x = np.array([3.0, 1.0, 2.0])
    jaxpr = stage(f, x)
    assert [type(s) for s in partition(jaxpr)] == [KernelStep, HostStep, KernelStep, HostStep]
    executable = compile_jaxpr(jaxpr)
    y = np.sort(np.exp(x))
    for a, b in zip(executable(x), (y * x, y, np.sort(-y)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert "# host call" in executable.as_text()
    assert "exp(" in executable.as_text()


def test_host_results_never_alias(stage):
    x = np.ones(3)
    executable = compile_jaxpr(stage(lambda x: (view_p.bind(x), view_p.bind(neg_p.bind(x))), x))
    outs = executable(x)
    assert not np.shares_memory(outs[0], x)
    np.testing.assert_array_equal(outs[1], -x)


def test_broadcasts_wait_for_the_kernel_that_reads_them(stage):
    def f(x):
        wide = broadcast_in_dim_p.bind(x, shape=(50, 3), broadcast_dimensions=(1,))
        return mul_p.bind(
            wide,
            broadcast_in_dim_p.bind(sort_p.bind(neg_p.bind(x)), shape=(50, 3), broadcast_dimensions=(1,)),
        )

    x = np.arange(3.0)
    executable = compile_jaxpr(stage(f, x))
    assert [len(u.kernel.buffers) for u in executable.kernels] == [2, 3]
    np.testing.assert_array_equal(executable(x)[0], np.broadcast_to(x * np.sort(-x), (50, 3)))


def test_host_calls_with_effects_keep_their_order(stage):
    seen = []

    def tell(x, *, tag):
        seen.append((tag, x.sum()))
        return x

    tell_p = Primitive("tell", lambda x, *, tag: x, tell, effects=lambda tag: Effect.HOST)

    def f(x):
        late = sort_p.bind(exp_p.bind(sort_p.bind(x)))
        tell_p.bind(late, tag="first")
        tell_p.bind(x, tag="second")
        return tell_p.bind(neg_p.bind(x), tag="third")

    x = np.zeros(3)
    compile_jaxpr(stage(f, x))(x)
    assert seen == [("first", 3.0), ("second", 0.0), ("third", 0.0)]


@pytest.mark.parametrize("backend", ["python", "llvm"])
def test_failure_names_the_index_and_the_line(stage, backend):
    x, good, bad = np.arange(5.0), np.array([1, 4]), np.array([1, 9])
    jaxpr = stage(lambda x, i: gather_p.bind(exp_p.bind(x), i, axes=(0,), mode="raise"), x, good)
    here = user_source()
    eqns = [Eqn(e.primitive, e.invars, e.outvars, e.params, here) for e in jaxpr.eqns]
    with config.patch(backend=backend):
        executable = compile_jaxpr(Jaxpr(jaxpr.invars, eqns, jaxpr.outvars))
        np.testing.assert_allclose(executable(x, good)[0], np.exp(x)[good])
        with pytest.raises(errors.IndexOutOfBoundsError, match=r"9(.|\n)*test_executable\.py") as caught:
            executable(x, bad)
        assert str(caught.value).count("\n  at ") == 1
        np.testing.assert_allclose(executable(x, good)[0], np.exp(x)[good])


def test_failure_of_an_unused_result(stage):
    def f(x, i):
        gather_p.bind(x, i, axes=(0,), mode="raise")
        return neg_p.bind(x)

    x = np.arange(5.0)
    executable = compile_jaxpr(stage(f, x, np.array([1])))
    np.testing.assert_array_equal(executable(x, np.array([1]))[0], -x)
    with pytest.raises(IndexError):
        executable(x, np.array([-6]))


def test_a_check_after_a_loop_is_raised_without_running_the_loop_in_numpy(monkeypatch):
    def f(x):
        total = lax.fori_loop(0, 5, lambda i, s: s + x[0], 0.0)
        checkify.check(total < limit, "too much: {}", total)
        return total

    def slow(*args):
        raise AssertionError("NumPy runs the loop")

    monkeypatch.setattr(executable, "evaluate_on_host", slow)
    limit = 20.0
    assert ft.jit(f)(np.array([3.0])) == 15.0
    limit = 10.0
    with pytest.raises(errors.CheckError, match="too much: 15"):
        ft.jit(lambda x: f(x))(np.array([3.0]))


def test_numpys_own_errors_are_typed(stage):
    def failing(x):
        raise np.linalg.LinAlgError("singular")

    fail_p = Primitive("fail", lambda x: x, failing)
    jaxpr = stage(lambda x: fail_p.bind(x), np.ones(2))
    here = user_source()
    jaxpr = Jaxpr(
        jaxpr.invars, [Eqn(e.primitive, e.invars, e.outvars, {}, here) for e in jaxpr.eqns], jaxpr.outvars
    )
    with pytest.raises(errors.LinAlgError, match="singular"):
        compile_jaxpr(jaxpr)(np.ones(2))


class _Stats:
    def __init__(self):
        self.seen = []

    def count_kernel(self, route, origin):
        self.seen.append((route, origin))


def test_compiles_at_the_first_call_and_counts(stage):
    stats = _Stats()
    x = np.ones((7, 3))
    jaxpr = stage(lambda x: mul_p.bind(x, 123.25), x, stats=stats)
    executable = compile_jaxpr(jaxpr)
    assert stats.seen == []
    executable(x)
    executable(x)
    again = compile_jaxpr(jaxpr).compile()
    assert [route for route, _ in stats.seen] == ["python", "python"]
    assert [origin for _, origin in stats.seen] == ["compiled", "memory"]
    assert again.kernels[0].route == "python"
    assert again.kernels[0].llvm == ""


def test_options_are_those_of_the_definition(stage):
    x = np.ones(3)
    executable = compile_jaxpr(stage(lambda x: neg_p.bind(x), x))
    with config.patch(backend="llvm"):
        executable(x)
    assert executable.kernels[0].route == "python"


def test_threads_share_an_executable(stage):
    x = np.arange(60.0).reshape(20, 3)

    def f(x):
        e = exp_p.bind(mul_p.bind(x, 0.01))
        total = reduce_sum_p.bind(e, axes=(0, 1))
        return mul_p.bind(e, broadcast_in_dim_p.bind(total, shape=(20, 3), broadcast_dimensions=()))

    with config.patch(backend="llvm"):
        executable = compile_jaxpr(stage(f, x))
    wrong = []

    def work(n):
        for _ in range(200):
            e = np.exp(0.01 * (x + n))
            if not np.allclose(executable(x + n)[0], e * e.sum(), rtol=1e-12):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_nothing_keeps_an_executable_alive(stage):
    c = np.arange(5.0)
    executable = compile_jaxpr(stage(lambda x: add_p.bind(x, c), np.ones(5)))
    executable(np.ones(5))
    dead = weakref.ref(executable)
    gc.collect()
    gc.disable()
    try:
        del executable
        assert dead() is None
    finally:
        gc.enable()


def test_slices_of_inputs(stage):
    x = np.arange(10.0)
    window = {"start_indices": (2,), "limit_indices": (9,), "strides": (3,)}
    np.testing.assert_array_equal(
        compile_jaxpr(stage(lambda x: slice_p.bind(x, **window), x))(x)[0], x[2:9:3]
    )


@pytest.mark.wide(2)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_long_sums_in_single_precision_are_as_good_as_numpys(dtype):
    """A million times 0.1: added one by one in single precision, the third digit is wrong."""
    x = np.full(10**6, 0.1, dtype)
    (total,) = compile_jaxpr(stage(lambda x: [reduce_sum_p.bind(x, axes=(0,))], [Aval(x.shape, x.dtype)]))(x)
    np.testing.assert_allclose(total, np.sum(x.astype(np.complex128)), rtol=1e-6)
