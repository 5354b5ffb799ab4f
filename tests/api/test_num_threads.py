"""Loops that several threads run: the values of one thread, in any process, after failures and interrupts too."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ConfigError
from functrans.lowering.blas import has_own_products
from functrans.lowering.loops.passes import parallel
from functrans.lowering.loops.show import show
from functrans.lowering.run.executable import compile_jaxpr

X = np.random.default_rng(0).normal(size=150_000)
PATIENCE = 5.0


@pytest.fixture(autouse=True)
def _divide_short_loops(monkeypatch):
    monkeypatch.setattr(parallel, "LEAST", 1 << 17)
    monkeypatch.setattr(parallel, "LEAST_CHUNK", 1 << 13)


def text_of(f, threads, *args):
    """The text of a function's kernel for a number of threads."""
    with ft.config.patch(num_threads=threads):
        (unit,) = compile_jaxpr(ft.make_jaxpr(f)(*args)).kernels
        return show(unit.kernel)


def run(f, threads, *args):
    with ft.config.patch(num_threads=threads):
        return np.asarray(ft.jit(lambda *xs: f(*xs))(*args))


def chain(x):
    return fnp.sin(x) * fnp.exp(-x * x) + fnp.tanh(x)


def rows(x):
    x = x.reshape(300, 500)
    e = fnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def newton(a):
    return lax.while_loop(lambda c: abs(c * c - a) > 1e-12 * a, lambda c: 0.5 * (c + a / c), a)


def trajectory(x):
    """Scratch of 8 KB in each lane."""
    path = fnp.cumsum(x * fnp.arange(1000.0))
    return fnp.sum(path * path[::-1]) + fnp.max(fnp.sort(fnp.sin(path)))


ELEMENTWISE = {
    "elementwise chain": (chain, X),
    "rows, with scratch of each thread": (rows, X),
    "lanes in lax.map": (lambda x: lax.map(trajectory, x), X[:200]),
    "lanes of while_loop": (ft.vmap(newton), np.abs(X[:60_000]) + 0.1),
    "complex": (lambda x: fnp.exp(1j * x) / (2.0 + x), X),
    "float32 and booleans": (lambda x: fnp.where(x > 0, fnp.sin(x), fnp.exp(x)), X.astype(np.float32)),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_what_each_iteration_computes_is_that_of_one_thread_bit_for_bit(name):
    f, x = ELEMENTWISE[name]
    serial = run(f, 1, x)
    assert np.array_equal(run(f, 2, x), serial)
    assert np.array_equal(run(f, 5, x), serial)


FOLDS = {
    "sum": (fnp.sum, lambda x: math.fsum(x)),
    "sum of a complex array": (lambda x: fnp.sum(x * (1 + 2j)), lambda x: math.fsum(x) * (1 + 2j)),
    "maximum": (lambda x: fnp.max(fnp.abs(x)), lambda x: np.abs(x).max()),
    "minimum with NaN": (lambda x: fnp.min(fnp.where(x > 3, np.nan, x)), lambda x: np.nan),
    "any": (lambda x: fnp.any(x > 3.5), lambda x: (x > 3.5).any()),
    "all": (lambda x: fnp.all(x < 3.5), lambda x: (x < 3.5).all()),
    "several in one loop": (
        lambda x: fnp.stack([fnp.sum(x), fnp.max(x), fnp.sum(x * x)]),
        lambda x: [math.fsum(x), x.max(), math.fsum(x * x)],
    ),
    "pairs": (
        lambda x: fnp.sum(fnp.cos(x[:600, None] - x[None, :600])),
        lambda x: math.fsum(np.cos(x[:600, None] - x[None, :600]).ravel()),
    ),
}


@pytest.mark.parametrize("name", FOLDS)
def test_folds_are_exact_to_the_last_digits_and_repeatable(name):
    f, exact = FOLDS[name]
    first = run(f, 2, X)
    np.testing.assert_allclose(first, exact(X), rtol=1e-13, atol=1e-12)
    assert all(np.array_equal(run(f, 2, X), first, equal_nan=first.dtype.kind == "f") for _ in range(3))


def test_chunks_in_the_python_form_of_kernels(monkeypatch):
    """Its loops are those of the native form, so it shows that each iteration is in one chunk."""
    monkeypatch.setattr(parallel, "LEAST", 1)
    monkeypatch.setattr(parallel, "LEAST_CHUNK", 1)

    def f(x):
        e = fnp.exp(x - x.max(1, keepdims=True))
        return fnp.sum(e / e.sum(1, keepdims=True), axis=0), fnp.sum(x * x), fnp.max(x.T @ x)

    for n in (1, 2, 3, 7, 8, 130):
        x = X[: 5 * n].reshape(n, 5)
        with ft.config.patch(backend="python", num_threads=2):
            chunks = ft.jit(lambda x: f(x))(x)
        with ft.config.patch(num_threads=1):
            serial = ft.jit(lambda x: f(x))(x)
        for a, b in zip(chunks, serial):
            np.testing.assert_allclose(a, b, rtol=1e-13)


MATRICES = X[:64_000].reshape(1000, 8, 8) + 5 * np.eye(8)
IMAGES, WINDOW = X[:64_000].reshape(40, 4, 20, 20), X[:360].reshape(10, 4, 3, 3)


def conv(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME")


ROUTINES = {
    "solve": (lambda a: fnp.linalg.solve(a, a[:, :, :1]), [MATRICES]),
    "eigh": (lambda a: fnp.linalg.eigh(a + fnp.swapaxes(a, 1, 2))[1], [MATRICES[:200]]),
    "gradient of logdet": (ft.grad(lambda a: fnp.sum(fnp.linalg.slogdet(a)[1])), [MATRICES]),
    "one matrix, many right-hand sides": (
        lambda a, b: lax.map(lambda b: fnp.linalg.solve(a, b), b),
        [MATRICES[0], X[:16_000].reshape(2000, 8)],
    ),
    "product, wide and transposed": (
        lambda a, b: a @ b.T,
        [X[:6000].reshape(20, 300), X[:120_000].reshape(400, 300)],
    ),
    "product, tall": (lambda a, b: a.T @ b, [X[:90_000].reshape(300, 300), X[:15_300].reshape(300, 51)]),
    "convolution of images": (conv, [IMAGES, WINDOW]),
    "gradient of a convolution": (ft.grad(lambda x, w: fnp.sum(conv(x, w) ** 2), 1), [IMAGES, WINDOW]),
    "convolution of one image": (conv, [X[:40_000].reshape(1, 1, 200, 200), X[:250].reshape(10, 1, 5, 5)]),
    "cumulative sums and sorted rows": (lambda x: fnp.cumsum(fnp.sort(x, 1), 1), [X.reshape(300, 500)]),
    "windows": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (3, 3), (1, 1), "VALID"),
        [X.reshape(300, 500)],
    ),
}


@pytest.mark.parametrize("name", ROUTINES)
def test_routines_in_threads_give_the_results_of_one(name):
    f, args = ROUTINES[name]
    if not name.startswith("product") or has_own_products("d"):  # BLAS has threads of its own
        assert " team " in text_of(f, 2, *args)
    np.testing.assert_allclose(run(f, 3, *args), run(f, 1, *args), rtol=1e-12, atol=1e-12)


def test_gradients_run_in_threads_too():
    gradient = ft.grad(lambda x: fnp.sum(chain(x) ** 2))
    np.testing.assert_allclose(run(gradient, 2, X), run(gradient, 1, X), rtol=1e-13)


def test_one_text_serves_every_number_of_threads_and_one_thread_needs_none():
    def f(x):
        return fnp.sum(rows(x) ** 2)

    assert text_of(f, 2, X) == text_of(f, 3, X) == text_of(f, 20, X)
    assert " team " in text_of(f, 2, X)
    assert " team " not in text_of(f, 1, X)
    assert text_of(chain, 2, X[:1000]) == text_of(chain, 1, X[:1000])  # too short


def test_a_sum_in_the_written_order_stays_in_one_thread():
    with ft.config.patch(strict=True):
        assert run(fnp.sum, 2, X) == run(fnp.sum, 1, X)
    many = np.full(4, 1e200)
    product = np.concatenate([many, 1 / many] * 20_000)
    assert run(fnp.prod, 2, product[:100_000]) == run(fnp.prod, 1, product[:100_000])


def test_many_threads_of_python_call_at_once():
    f = ft.jit(lambda x: fnp.sum(chain(x)))
    with ft.config.patch(num_threads=2):
        expected = float(f(X))
    wrong = []

    def work():
        with ft.config.patch(num_threads=2):
            wrong.extend(i for i in range(20) if float(f(X)) != expected)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


FORKING = """
import os, numpy as np, functrans as ft, functrans.numpy as fnp
f = ft.jit(lambda x: fnp.sum(fnp.sin(x) * fnp.exp(-x * x)))
x = np.linspace(-1, 2, 200_000)
count = lambda: len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
with ft.config.patch(num_threads=3):
    expected = float(f(x))
    for _ in range(3):
        child = os.fork()
        if not child:
            before = count()
            good = float(f(x)) == expected and count() >= before + 2 * (before > 0)
            grandchild = os.fork()
            if not grandchild:
                os._exit(0 if float(f(x)) == expected else 1)
            os._exit(0 if good and os.waitpid(grandchild, 0)[1] == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert float(f(x)) == expected
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_workers_of_its_own():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failure_in_one_lane_is_that_of_one_thread():
    def lookup(x, i):
        return lax.map(lambda j: fnp.sum(fnp.cos(x[j] * fnp.arange(500.0))), i)

    i = np.arange(2000) % 100
    i[1234] = 100
    messages = []
    for threads in (1, 2):
        with pytest.raises(IndexError) as caught:
            run(lookup, threads, X[:100], i)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("lane", [0, 63])
def test_an_interrupt_ends_all_threads(lane):
    """Whether the long lane is in the main thread or in a worker, for which the main thread waits."""

    def wait(n):
        return lax.fori_loop(0, n, lambda i, c: 0.999 * c + 1.0, 0.0)

    lengths = np.full(64, 10_000)
    f = ft.jit(lambda n: lax.map(wait, n))
    with ft.config.patch(num_threads=2):
        short = np.asarray(f(lengths))
        lengths[lane] = 10**12
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            f(lengths)
        timer.join()
        lengths[lane] = 10_000
        start = time.monotonic()
        assert np.array_equal(np.asarray(f(lengths)), short)
        assert time.monotonic() - start < PATIENCE


def test_loops_inside_lanes_stay_in_their_thread():
    f = ft.vmap(ft.vmap(lambda x: fnp.sum(fnp.tanh(x * fnp.arange(300.0)))))
    x = X[:900].reshape(30, 30)
    assert np.array_equal(run(f, 2, x), run(f, 1, x))


@pytest.mark.slow
def test_bad_numbers_of_threads():
    for bad in (0, -1, 2.0, "2", True, None):
        with pytest.raises(ConfigError, match=r"config\.num_threads must be an integer of at least 1"):
            ft.config.num_threads = bad
    code = "import functrans; print(functrans.config.num_threads)"

    def started(**environment):
        env = {**os.environ, **environment}
        return subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )

    assert started(FUNCTRANS_NUM_THREADS="3").stdout == "3\n"
    assert started(OMP_NUM_THREADS="1").stdout == "1\n"
    assert (
        "FUNCTRANS_NUM_THREADS must be an integer of at least 1" in started(FUNCTRANS_NUM_THREADS="0").stderr
    )
    if hasattr(os, "sched_getaffinity"):
        cores = min(len(os.sched_getaffinity(0)), int(started().stdout))
        assert int(started(OMP_NUM_THREADS="").stdout) == cores


def test_products_whose_sizes_are_known_at_run_time_are_not_divided():
    """Those in a factorization by blocks."""
    a = np.random.default_rng(1).normal(size=(500, 500))
    a = a @ a.T + 500 * np.eye(500)

    def log_det(a):
        return 2 * fnp.sum(fnp.log(fnp.diagonal(fnp.linalg.cholesky(a))))

    one, two = (run(ft.grad(log_det), threads, a) for threads in (1, 2))
    np.testing.assert_allclose((two + two.T) / 2, np.linalg.inv(a), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-15)


def test_one_text_for_every_number_of_threads():
    """Scratch memory has a row for each thread, and a sum a part for each chunk: their numbers are parameters."""
    x = np.random.default_rng(0).normal(size=(3000, 400))

    def f(x):
        return ft.vmap(lambda row: fnp.cumsum(fnp.sort(row) * row))(x), fnp.sum(x * x)

    texts = []
    for threads in (2, 3, 4):
        with ft.config.patch(num_threads=threads):
            texts.append(ft.jit(lambda x: f(x)).lower(x).as_text("python"))
    assert texts[0] == texts[1] == texts[2]
    assert "_rows" in texts[0]
    assert "partial" in texts[0]
