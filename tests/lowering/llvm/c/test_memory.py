"""The memory of large results: reused when they have died, and never before."""

import ctypes
import gc
import itertools
import os
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.lowering.llvm.c import memory
from functrans.lowering.llvm.c.memory import KEPT, LEAST, MemoryHandler, results_memory
from functrans.lowering.llvm.c.native_call import result_maker
from functrans.runtime.private.numpy_names import SET_HANDLER, c_functions

N = LEAST // 8
LIMIT = 1 << 16
PAGE = 4096

_libc = ctypes.CDLL(None)
_libc.malloc.restype, _libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_libc.free.restype, _libc.free.argtypes = None, [ctypes.c_void_p]
_P, _S = ctypes.c_void_p, ctypes.c_size_t


class System:
    """A usual handler that knows what it gave; it has no more than `limit` bytes."""

    def __init__(self, limit=1 << 40):
        self.given, self.limit = {}, limit
        kinds = (_P, _P, _S), (_P, _P, _S, _S), (_P, _P, _P, _S), (None, _P, _P, _S)
        functions = self.allocate, self.unused, self.unused, self.release
        self.functions = [ctypes.PYFUNCTYPE(*k)(f) for k, f in zip(kinds, functions)]

    def allocate(self, ctx, size):
        if sum(self.given.values()) + size > self.limit:
            return None
        start = _libc.malloc(size)
        self.given[start] = size
        return start

    def unused(self, *args):
        raise AssertionError

    def release(self, ctx, start, size):
        assert self.given.pop(start) == size
        _libc.free(start)


def store(limit, system):
    kept = MemoryHandler(limit)
    addresses = [ctypes.cast(f, _P).value for f in system.functions]
    kept._store.usual = memory._Allocator(None, *addresses)
    return kept


def call(kept, name, *args):
    kinds = {
        "allocate": (_P, _P, _S),
        "allocate_zeros": (_P, _P, _S, _S),
        "resize": (_P, _P, _P, _S),
        "release": (None, _P, _P, _S),
    }
    function = ctypes.PYFUNCTYPE(*kinds[name])(memory._addresses()[name])
    return function(ctypes.addressof(kept._store), *args)


ORDERS = st.lists(
    st.tuples(
        st.sampled_from(["allocate", "allocate", "allocate_zeros", "release", "release", "resize", "forget"]),
        st.integers(0, 40),
        st.one_of(st.integers(1, 3 * PAGE), st.integers(LIMIT // 4, 2 * LIMIT)),
    ),
    max_size=80,
)


@settings(max_examples=60, deadline=None)
@given(ORDERS)
def test_no_block_is_given_twice_and_none_is_lost(orders):
    system = System()
    kept = store(LIMIT, system)
    live = {}  # address: what is in it

    def fill(data, size):
        content = np.frombuffer((ctypes.c_uint8 * size).from_address(data), np.uint8)
        content[:] = len(live) * 37 % 251 + 1
        live[data] = content

    for what, which, size in orders:
        chosen = [*live][which % len(live)] if live else None
        if what == "allocate":
            fill(call(kept, what, size), size)
        elif what == "allocate_zeros":
            data = call(kept, what, size, 3)
            assert not any(ctypes.string_at(data, 3 * size))
            fill(data, 3 * size)
        elif what == "forget":
            kept.forget()
            assert kept.kept == 0
        elif chosen is not None and what == "release":
            call(kept, what, chosen, live.pop(chosen).size)
        elif chosen is not None:
            before = live.pop(chosen).copy()
            data = call(kept, "resize", chosen, size)
            n = min(size, before.size)
            assert ctypes.string_at(data, n) == before[:n].tobytes()
            fill(data, size)
        assert 0 <= kept.kept <= LIMIT
        assert all(data % PAGE == 0 for data in live)
        ends = sorted((data, data + x.size) for data, x in live.items())
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(ends))
        assert all((x == x[0]).all() for x in live.values())
        blocks = len(live) + kept._store.count
        assert len(system.given) == blocks
        assert sum(system.given.values()) >= kept.kept + sum(x.size for x in live.values())
    for data, x in live.items():
        call(kept, "release", data, x.size)
    kept.forget()
    assert not system.given


def test_what_is_kept_returns_when_the_system_has_no_more():
    system = System(limit=20 * PAGE)
    kept = store(1 << 20, system)
    call(kept, "release", call(kept, "allocate", 12 * PAGE), 12 * PAGE)
    assert kept.kept == 12 * PAGE
    data = call(kept, "allocate", 16 * PAGE)
    assert data
    assert kept.kept == 0
    assert call(kept, "allocate", 16 * PAGE) is None
    call(kept, "release", data, 16 * PAGE)
    kept.forget()


def test_sizes_that_do_not_exist():
    kept = store(LIMIT, System())
    assert call(kept, "allocate", (1 << 64) - 1) is None
    assert call(kept, "allocate_zeros", 1 << 40, 1 << 40) is None


def test_a_store_in_use_is_left_alone():
    """As after a fork while another thread used it."""
    system = System()
    kept = store(LIMIT, system)
    call(kept, "release", call(kept, "allocate", PAGE), PAGE)
    kept._store.busy = 1
    data = call(kept, "allocate", PAGE)
    call(kept, "release", data, PAGE)
    kept.forget()
    assert kept.kept == PAGE
    assert len(system.given) == 1
    kept._store.busy = 0
    kept.forget()
    assert not system.given


# --- of programs --------------------------------------------------------------------------------------------


@pytest.fixture
def double():
    f = ft.jit(lambda x: 2.0 * x)
    f(np.ones(N))
    results_memory().forget()
    yield f
    gc.collect()
    results_memory().forget()


def test_the_memory_of_a_dead_result_is_that_of_the_next(double):
    x = np.arange(N, dtype=float)
    y = double(x)
    address = y.ctypes.data
    assert y.base.flags.owndata
    assert not y.flags.writeable
    del y
    assert results_memory().kept == LEAST
    y = double(x)
    assert y.ctypes.data == address
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.wide(3)
@pytest.mark.parametrize("keep", [lambda y: y, lambda y: y[3:], lambda y: y.base, memoryview, np.asarray])
def test_what_is_in_use_is_not_reused(double, keep):
    x = np.arange(N, dtype=float)
    held = keep(double(x))
    gc.collect()
    others = [double(x + i) for i in range(4)]
    np.testing.assert_array_equal(np.asarray(held)[-5:], 2 * x[-5:])
    assert len({y.ctypes.data for y in others}) == 4


def test_small_results_and_those_of_numpy_have_no_part_in_it(double):
    double(np.ones(N // 2))
    np.ones(N) * 2
    assert results_memory().kept == 0


def test_no_more_than_the_limit_is_kept(double):
    n = KEPT // 8 // 4 + N
    results = [double(np.ones(n)) for _ in range(5)]
    del results
    assert 0 < results_memory().kept <= KEPT
    ft.clear_caches()
    assert results_memory().kept == 0


def test_results_in_memory_of_another_size(double):
    """Up to an eighth of it stays unused."""
    double(np.ones(N + N // 16))
    before = results_memory().reused
    y = double(np.arange(N, dtype=float))
    assert results_memory().reused == before + 1
    np.testing.assert_array_equal(y, 2.0 * np.arange(N))
    z = double(np.ones(2 * N))
    assert results_memory().reused == before + 1
    assert (z == 2).all()


def test_tracemalloc_counts_what_lives(double):
    x = np.ones(N)
    tracemalloc.start()
    try:
        y = double(x)
        assert tracemalloc.get_traced_memory()[0] >= LEAST
        del y
        assert results_memory().kept >= LEAST
        assert tracemalloc.get_traced_memory()[0] < LEAST // 4
        z = double(x)
        assert tracemalloc.get_traced_memory()[0] >= z.nbytes
    finally:
        tracemalloc.stop()


def test_a_handler_of_the_user_s_stays_in_charge(double):
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(c_functions()[SET_HANDLER])
    theirs = MemoryHandler(1 << 24)
    before = set_handler(theirs.capsule)
    try:
        kept = results_memory().kept
        y = double(np.arange(N, dtype=float))
        assert (y == 2.0 * np.arange(N)).all()
        del y
        assert results_memory().kept == kept
        assert theirs.kept >= LEAST
        make = result_maker([(np.ndarray, np.dtype(float), (N,))])
        assert make().flags.owndata
    finally:
        assert set_handler(before) is theirs.capsule
    assert double(np.ones(N))[0] == 2
    theirs.forget()


def test_a_plain_result_is_resized(double):
    from functrans.lowering.run.executable import compile_jaxpr

    program = compile_jaxpr(ft.make_jaxpr(lambda x: 2.0 * x)(np.ones(N)))
    (y,) = program(np.arange(N, dtype=float))
    assert type(y) is np.ndarray
    y.resize(3 * N, refcheck=False)
    np.testing.assert_array_equal(y[:N], 2.0 * np.arange(N))
    y.resize(5, refcheck=False)
    np.testing.assert_array_equal(y, 2.0 * np.arange(5))


def test_a_donated_result_stays_in_its_memory(double):
    step = ft.jit(lambda x: x + 1.0, donate_argnums=0)
    x = double(np.ones(N))
    address = x.ctypes.data
    for _ in range(3):
        x = step(x)
        assert x.ctypes.data == address
    assert (x == 5).all()


def test_threads(double):
    wrong = []

    def work(k):
        x = np.full(N, float(k))
        for _ in range(20):
            y, z = double(x), double(x + 1)
            if not ((y == 2 * k).all() and (z == 2 * k + 2).all()):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_has_memory_of_its_own(double):
    x = np.arange(N, dtype=float)
    y = double(x)
    del y
    child = os.fork()
    if not child:
        z = double(x + 1)
        os._exit(int(not (z == 2 * (x + 1)).all()))
    y = double(x)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(y, 2 * x)
