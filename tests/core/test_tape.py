"""Tapes: records of a length that nobody knows beforehand, in memory that grows up to a limit and is freed."""

import gc
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.aval import Aval
from functrans.core.tape import FEWEST, Tape, TapeAval, TapeWriter, new_pool, records, reserve
from functrans.errors import TapeLimitError
from functrans.primitives.tape import write_tape

F64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def halvings(x):
    """A loop whose number of iterations depends on what it computes; its derivative keeps them."""
    return lax.while_loop(lambda v: fnp.sum(v) > 1.0, lambda v: fnp.sin(v) * 0.9, x)


# --- the type -----------------------------------------------------------------------------------------------


def test_type():
    row = Aval((3,), F64)
    one, many = TapeAval(row), TapeAval(row, (5,))
    assert one.shape == (2,)
    assert one.dtype == INT64
    assert many.shape == (5, 2)
    assert many.with_shape((2,)) == one
    assert one != many
    assert one != Aval((2,), INT64)
    assert hash(TapeAval(row)) == hash(one)
    assert str(one) == "tape[]<f64[3]>"
    assert str(TapeAval(one, (4,))) == "tape[4]<tape[]<f64[3]>>"
    assert one.levels == 1
    assert TapeAval(one).levels == 2
    assert one.record_bytes() == 24
    assert TapeAval(one).record_bytes() == 16
    assert one.strong() is one


def test_records_of_a_weak_type_are_strong():
    assert TapeAval(Aval((), F64, True)) == TapeAval(Aval((), F64))


# --- memory -------------------------------------------------------------------------------------------------


def test_pool_grows():
    pool = new_pool()
    assert pool.capacity == 0
    assert records(pool, (3,), F64).shape == (0, 3)
    assert reserve(pool, 1, 24, 1 << 20)
    assert pool.capacity == FEWEST
    records(pool, (3,), F64)[:] = 7.0
    assert reserve(pool, FEWEST + 1, 24, 1 << 20)
    assert pool.capacity == 2 * FEWEST
    np.testing.assert_array_equal(records(pool, (3,), F64)[:FEWEST], 7.0)


def test_pool_stops_at_the_limit():
    pool = new_pool()
    assert reserve(pool, 10, 8, 80)
    assert pool.capacity == 10
    assert not reserve(pool, 11, 8, 80)
    assert pool.capacity == 10


def test_empty_records():
    pool = new_pool()
    assert reserve(pool, 10, TapeAval(Aval((0,), F64)).record_bytes(), 1 << 20)
    assert records(pool, (0,), F64)[:10].shape == (10, 0)


def test_write_and_read():
    writer = TapeWriter(Aval((2,), F64), 1 << 20)
    rows = [np.array([i, -i], float) for i in range(100)]
    spans = [writer.write(rows[:30]), writer.write([]), writer.write(rows[30:])]
    tapes = [Tape(s, writer.pools, writer.aval) for s in spans]
    assert [len(t) for t in tapes] == [30, 0, 70]
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(tapes[0].record(i) if i < 30 else tapes[2].record(i - 30), row)
    many = Tape(np.stack(spans), writer.pools, TapeAval(Aval((2,), F64), (3,)))
    np.testing.assert_array_equal(many[2].record(5), rows[35])
    assert many.shape == (3, 2)
    assert "tape[3]" in repr(many)


def test_tapes_of_tapes():
    inner = TapeWriter(Aval((), F64), 1 << 20)
    parts = [
        Tape(inner.write([np.float64(v) for v in vs]), inner.pools, inner.aval) for vs in ([1, 2], [], [3])
    ]
    writer = TapeWriter(inner.aval, 1 << 20)
    tape = Tape(writer.write(parts), writer.pools, writer.aval)
    actual = [[float(t.record(i)) for i in range(len(t))] for t in map(tape.record, range(len(tape)))]
    assert actual == [[1, 2], [], [3]]


def test_writer_reports_missing_room():
    writer = TapeWriter(Aval((), F64), 80)
    assert writer.write([np.float64(i) for i in range(10)]) is not None
    assert writer.write([np.float64(1)]) is None


# --- the limit ----------------------------------------------------------------------------------------------

LONG = np.full(50, 2.0)


@pytest.mark.parametrize(
    "run",
    [
        lambda f, x: ft.grad(f)(x),
        lambda f, x: ft.jit(ft.grad(f))(x),
        lambda f, x: ft.grad(ft.jit(f))(x),
        lambda f, x: ft.vmap(ft.grad(f))(np.stack([x, x])),
        lambda f, x: ft.vjp(f, x),
    ],
    ids=["eager", "jit-grad", "grad-jit", "vmap", "vjp"],
)
def test_limit(run):
    def f(x):
        return fnp.sum(halvings(x))  # the user's line

    with (
        ft.config.patch(tape_limit=1000),
        pytest.raises(TapeLimitError, match=r"config\.tape_limit = 1000 bytes") as e,
    ):
        run(f, LONG)
    assert "functrans.checkpoint" in str(e.value)
    assert "test_tape.py" in str(e.value)
    assert "lax.while_loop" in str(e.value)
    assert np.isfinite(run(f, LONG)[0]).all()  # the process goes on, and so does the function


def test_limit_of_tapes_written_by_python():
    rows = [np.zeros(10)] * 10
    assert len(write_tape(Aval((10,), F64), rows)) == 10
    with ft.config.patch(tape_limit=799), pytest.raises(TapeLimitError, match="799 bytes"):
        write_tape(Aval((10,), F64), rows)


def test_limit_of_a_loop_in_a_loop():
    def f(x):
        return lax.scan(lambda c, _: (halvings(c + x), None), x, None, length=20)[0].sum()

    with ft.config.patch(tape_limit=20_000), pytest.raises(TapeLimitError) as e:
        ft.jit(ft.grad(f))(LONG)
    assert "lax.while_loop" in str(e.value)


def test_values_need_no_tape():
    with ft.config.patch(tape_limit=1):
        ft.jit(halvings)(LONG)
        ft.jvp(halvings, (LONG,), (LONG,))


# --- memory is freed ----------------------------------------------------------------------------------------


def test_memory_is_freed():
    x = np.full(1000, 2.0)
    f = ft.jit(ft.grad(lambda x: fnp.sum(halvings(x))))
    for _ in range(50):
        f(x)
    before = resident()
    for _ in range(1000):
        f(x)
    assert resident() - before < 30e6  # each call keeps 8 MB and more


def test_many_calls_do_not_grow():
    f = ft.jit(ft.grad(lambda x, n: lax.fori_loop(0, n, lambda i, v: fnp.sin(v) * x, x).sum()))
    x = np.full(10, 0.3)
    for _ in range(500):
        f(x, 100)
    before = resident()
    for _ in range(10_000):
        f(x, 100)
    assert resident() - before < 4e6  # each call keeps 8 kB


@pytest.mark.slow
def test_memory_of_a_vjp_is_freed_with_it():
    x = np.full(1000, 2.0)
    f = ft.jit(lambda x: fnp.sum(halvings(x)))
    for _ in range(20):
        ft.vjp(f, x)[1](1.0)
    gc.collect()
    before = resident()
    for _ in range(300):
        ft.vjp(f, x)
    gc.collect()
    assert resident() - before < 30e6


def test_memory_after_an_error():
    f = ft.jit(ft.grad(lambda x: fnp.sum(halvings(x))))
    x = np.full(1000, 2.0)

    def fails():
        with ft.config.patch(tape_limit=100_000), pytest.raises(TapeLimitError):
            f(x)

    for _ in range(20):
        fails()
    before = resident()
    for _ in range(300):
        fails()
    assert resident() - before < 30e6


def test_threads_have_their_own_tapes():
    f = ft.jit(ft.grad(lambda x: fnp.sum(halvings(x))))
    points = [np.full(20, v) for v in np.linspace(0.2, 3.0, 8)]
    expected = [np.asarray(f(p)) for p in points]
    barrier = threading.Barrier(4)

    def work(k):
        barrier.wait()
        for i in range(200):
            np.testing.assert_array_equal(f(points[(i + k) % 8]), expected[(i + k) % 8])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
