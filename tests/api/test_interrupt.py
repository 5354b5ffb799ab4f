"""Ctrl-C, and other signals, while a compiled loop runs."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.backend import Options
from functrans.lowering.llvm.emit import emit_llvm
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.run.compile import compile_kernel

FOREVER = 10**12
#: What a loaded machine may need; an idle one needs some 50 ms.
PATIENCE = 5.0

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or threading.current_thread() is not threading.main_thread(),
    reason="needs POSIX signals",
)


@contextlib.contextmanager
def signal_after(delay, number=signal.SIGINT):
    """Send this process a signal; yields a function that tells how long ago."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    timer = threading.Timer(delay, send)
    timer.start()
    try:
        yield lambda: time.monotonic() - sent[0]
    finally:
        timer.cancel()
        timer.join()


MATRIX = np.random.default_rng(0).normal(size=(300, 300)) / 300
LOOPS = {
    "tiny body": (lambda i, c: 0.999 * c + 1.0, 1.0),
    "large arrays": (lambda i, c: fnp.sin(c) + 1.0, np.ones(300_000)),
    "routines of BLAS": (lambda i, c: fnp.sin(c) @ MATRIX, MATRIX),
    "a short loop inside": (lambda i, c: lax.fori_loop(0, 3, lambda j, c: 0.5 * c + j, c), 1.0),
    "a long loop inside": (lambda i, c: lax.fori_loop(0, i + FOREVER, lambda j, c: 0.5 * c + j, c), 1.0),
    "loops three deep": (
        lambda i, c: lax.fori_loop(
            0, i + FOREVER, lambda j, c: lax.fori_loop(0, j + 100, lambda k, c: 0.5 * c + k, c), c
        ),
        1.0,
    ),
    "what raises": (lambda i, c: c + fnp.asarray([1.0, 2.0])[i % 2], 1.0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_ctrl_c_ends_a_loop(name):
    body, start = LOOPS[name]
    loop = ft.jit(lambda x, n: lax.fori_loop(0, n, body, x))
    rounds = 0 if "long" in name or "deep" in name else 3
    before = loop(start, rounds)
    with signal_after(0.1) as since, pytest.raises(KeyboardInterrupt):
        loop(start, FOREVER)
    assert since() < PATIENCE
    np.testing.assert_array_equal(loop(start, rounds), before)


def test_loops_of_known_length_and_eager_ones():
    with signal_after(0.2) as since, pytest.raises(KeyboardInterrupt):
        lax.scan(lambda c, _: (0.999 * c + 1.0, None), 1.0, None, length=FOREVER)
    assert since() < PATIENCE


def test_memory_of_interrupted_loops_is_freed():
    loop = ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: fnp.sqrt(c + i), x))
    start = np.ones(200_000)
    loop(start, 1)
    resident = []
    for _ in range(8):
        with signal_after(0.03), pytest.raises(KeyboardInterrupt):
            loop(start, FOREVER)
        resident.append(_resident())
    assert resident[-1] - resident[1] < 4 * start.nbytes


def _resident():
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def test_the_users_handler_runs():
    class Alarm(Exception):
        pass

    def handler(number, frame):
        raise Alarm(number)

    loop = ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: 0.999 * c + 1.0, x))
    loop(1.0, 1)
    old = signal.signal(signal.SIGUSR1, handler)
    try:
        with signal_after(0.1, signal.SIGUSR1), pytest.raises(Alarm):
            loop(1.0, FOREVER)
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_a_handler_that_does_not_raise_changes_nothing():
    ran = []
    loop = ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: 0.999 * c + 1.0, x))
    expected = loop(1.0, 50_000_000)
    old = signal.signal(signal.SIGUSR1, lambda *_: ran.append(time.monotonic()))
    try:
        with signal_after(0.06, signal.SIGUSR1):
            actual = loop(1.0, 50_000_000)
            time.sleep(0.1)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert actual == expected
    assert len(ran) == 1


def test_other_threads_run_during_a_loop_and_are_not_interrupted():
    loop = ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: 0.999 * c + 1.0, x))
    expected = loop(1.0, 100_000_000)
    results = []
    worker = threading.Thread(target=lambda: results.append(loop(1.0, 100_000_000)))
    worker.start()
    with signal_after(0.05), pytest.raises(KeyboardInterrupt):
        while worker.is_alive():  # this thread can compute meanwhile
            sum(range(1000))
        time.sleep(PATIENCE)
    worker.join()
    assert results == [expected]


def test_between_host_calls():
    calls = []

    def body(c, _):
        ft.debug.callback(lambda c: calls.append(1), c)
        return c + 1.0, None

    loop = ft.jit(lambda x: lax.scan(body, x, None, length=FOREVER)[0])
    loop.lower(0.0).compile()
    with signal_after(0.3) as since, pytest.raises(KeyboardInterrupt):
        loop(0.0)
    assert since() < PATIENCE
    assert calls


SCRIPT = """
    import functrans as ft
    from functrans import lax
    loop = ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: 0.999 * c + 1.0, x))
    loop(1.0, 1)
    print("running", flush=True)
    try:
        loop(1.0, 10**12)
    except KeyboardInterrupt:
        print("interrupted", float(loop(0.0, 2)), flush=True)
"""


def test_from_outside_of_the_process():
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "running\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out == "interrupted 1.999\n"
    assert err == ""


def test_compiling():
    """The compilation goes on by itself; waiting for it ends at once."""

    def f(x):
        for i in range(120):
            x = fnp.sin(x * (i + 0.5)) + fnp.cumsum(x)[::-1]
        return x

    compiled = ft.jit(f)
    lowered = compiled.lower(np.ones(5))
    with signal_after(0.1) as since, pytest.raises(KeyboardInterrupt):
        lowered.compile()
        time.sleep(PATIENCE)
    assert since() < PATIENCE
    np.testing.assert_allclose(compiled(np.ones(5)), f(np.ones(5)), rtol=1e-9)


# --- kernels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_a_loop_whose_body_fails_ends(backend):
    b = StatementBuilder("endless")
    y = b.buffer("y", np.dtype("f8"), (), "out")
    rounds = b.local(b.const(0.0, y.dtype))
    with b.while_(lambda: rounds.get() >= 0.0):
        rounds.set(rounds.get() + 1.0)
        b.fail_if(rounds.get() > 5.0)
    b.store(y, (), rounds.get())
    out = np.zeros(())
    code = compile_kernel(b.finish(), Options(backend=backend))
    assert code.run((out,)) == 1


def test_while_loops_are_interrupted():
    b = StatementBuilder("endless")
    y = b.buffer("y", np.dtype("f8"), (), "out")
    rounds = b.local(b.const(0.0, y.dtype))
    with b.while_(lambda: rounds.get() >= 0.0):
        rounds.set(rounds.get() * 0.5 + 1.0)
    b.store(y, (), rounds.get())
    run = compile_kernel(b.finish()).bind(nogil=True)
    with signal_after(0.1) as since, pytest.raises(KeyboardInterrupt):
        run((np.zeros(()),))
    assert since() < PATIENCE


def test_only_loops_of_the_user_look_for_signals_and_only_long_ones():
    def text(stop, interruptible):
        b = StatementBuilder("loop")
        y = b.buffer("y", np.dtype("f8"), (100,), "out")
        with b.loop(stop, interruptible=interruptible) as i:
            b.store(y, (i,), b.const(1.0, y.dtype))
        return emit_llvm(b.finish()).text

    assert "functrans.poll" in text(100, True)
    assert "functrans.poll" not in text(100, False)
    assert "functrans.poll" not in text(8, True)


def test_a_vectorised_loop_stays_one():
    """The loop inside the pieces has nothing in it but the body."""
    b = StatementBuilder("rows")
    x, y = b.buffer("x", np.dtype("f8"), (1000,), "in"), b.buffer("y", np.dtype("f8"), (1000,), "out")
    with b.loop(1000, interruptible=True) as i:
        b.store(y, (i,), b.load(x, (i,)) * 2.0)
    lines = emit_llvm(b.finish()).text.splitlines()
    latch = next(n for n, line in enumerate(lines) if "!llvm.loop" in line)
    head = max(n for n, line in enumerate(lines[:latch]) if line.startswith("body"))
    assert not any(word in line for line in lines[head:latch] for word in ("call", "br ", "%status"))


def test_huge_operations_on_arrays_are_interrupted_too():
    @ft.jit
    def energy(x):
        d = x[:, None] - x[None, :]
        return fnp.sum(fnp.exp(-d * d))

    with signal_after(0.5) as since, pytest.raises(KeyboardInterrupt):
        energy(np.linspace(0.0, 1.0, 300_000))
    assert since() < PATIENCE
    assert energy(np.zeros(4)) == 16.0


@pytest.mark.parametrize("mapped", [False, True])
def test_while_loops_that_never_end(mapped):
    f = lambda x: lax.while_loop(lambda c: c != 0.0, lambda c: 0.5 * c + 1.0, x)
    loop = ft.jit(ft.vmap(f) if mapped else f)
    zero, one = (np.zeros(3), np.ones(3)) if mapped else (0.0, 1.0)
    loop(zero)
    with signal_after(0.1) as since, pytest.raises(KeyboardInterrupt):
        loop(one)
    assert since() < PATIENCE
    np.testing.assert_array_equal(loop(zero), zero)


def test_reverse_mode_through_a_loop_of_unknown_length():
    """Its tape is freed."""
    slope = ft.jit(ft.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: fnp.sin(c), x)))
    before = slope(0.5, 3)
    with signal_after(0.05) as since, pytest.raises(KeyboardInterrupt):
        for _ in range(10**6):
            slope(0.5, 10**6)
    assert since() < PATIENCE
    assert slope(0.5, 3) == before
