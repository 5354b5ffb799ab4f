"""Many threads at once: one function under `jit`, `grad` and `vmap`; contexts of their own; one trace for one type."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

THREADS = 32


def together(work):
    """``work(i)`` in each thread, all started at the same moment; their results."""
    barrier = threading.Barrier(THREADS)

    def run(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_all_transformations_of_one_function():
    f = ft.jit(lambda x: fnp.sum(fnp.sin(x) * x))
    slope = lambda x: np.cos(x) * x + np.sin(x)
    works = [
        (lambda x: f(x), lambda x: np.sum(np.sin(x) * x)),
        (lambda x: ft.grad(f)(x), slope),
        (lambda x: ft.vmap(f)(x[:, None]), lambda x: np.sin(x) * x),
        (lambda x: ft.jit(ft.grad(f))(x), slope),
        (lambda x: ft.vmap(ft.grad(f))(np.stack([x, -x]))[0], slope),
        (lambda x: ft.jvp(f, (x,), (x,))[1], lambda x: np.sum(slope(x) * x)),
        (lambda x: ft.grad(lambda y: f(y) * 2)(x), lambda x: 2 * slope(x)),
        (lambda x: np.diag(ft.hessian(f)(x)), lambda x: 2 * np.cos(x) - np.sin(x) * x),
    ]

    def work(i):
        run, expected = works[i % len(works)]
        for n in (5, 40):
            x = np.linspace(i, i + 1, n)
            np.testing.assert_allclose(run(x), expected(x), rtol=1e-10, atol=1e-12)

    together(work)
    assert f.cache_info().traces <= 6


def test_one_type_is_traced_once():
    runs = []

    def f(x):
        runs.append(1)
        return fnp.exp(x) * 2

    jitted = ft.jit(f)
    actual = together(lambda i: jitted(np.full(3, float(i))))
    for i, out in enumerate(actual):
        np.testing.assert_allclose(out, np.exp(np.full(3, float(i))) * 2)
    assert len(runs) == 1
    info = jitted.cache_info()
    assert (info.traces, info.hits, sum(info.routes.values())) == (1, THREADS - 1, 1)


def test_a_hundred_threads_compile_ten_functions_once(tmp_path, monkeypatch):
    """Also where all read and write the cache on disk."""
    monkeypatch.setattr(ft.config, "cache", True)
    monkeypatch.setattr(ft.config, "cache_dir", str(tmp_path))

    def power(n):
        def f(x):
            for _ in range(n + 2):
                x = fnp.sin(x) * x + 0.53125
            return x

        return ft.jit(f)

    functions = [power(n) for n in range(10)]
    barrier = threading.Barrier(100)

    def work(i):
        barrier.wait()
        return [functions[(i + k) % 10](np.ones(3)) for k in range(10)]

    with ThreadPoolExecutor(100) as pool:
        results = list(pool.map(work, range(100)))
    infos = [f.cache_info() for f in functions]
    assert [(i.traces, i.compiles + i.disk_hits) for i in infos] == [(1, 1)] * 10
    for i, found in enumerate(results):
        for k, out in enumerate(found):
            np.testing.assert_array_equal(out, results[0][(i + k) % 10])


def test_traces_of_threads_do_not_meet():
    inside = threading.Barrier(THREADS)

    def work(i):
        def f(x):
            inside.wait()  # all threads are in the middle of tracing
            y = x * i
            inside.wait()
            return fnp.sum(y * y)

        return [ft.grad(f), ft.jit(ft.grad(f)), ft.jit(f)][i % 3](np.ones(2))

    for i, out in enumerate(together(work)):
        np.testing.assert_allclose(out, 2 * i**2 if i % 3 == 2 else np.full(2, 2.0 * i**2))


def test_options_of_threads_do_not_meet():
    f = ft.jit(lambda x: x * 3)

    def work(i):
        with ft.config.patch(disable_jit=bool(i % 2), backend=["llvm", "python"][i % 4 // 2]):
            return type(f(float(i)))

    actual = together(work)
    assert {t for i, t in enumerate(actual) if i % 2} == {float}
    assert all(issubclass(t, ft.Array) for i, t in enumerate(actual) if not i % 2)


def test_errors_stay_in_their_thread():
    f = ft.jit(lambda x, i: fnp.sum(x[i]))

    def work(i):
        x = np.arange(4.0)
        if i % 2:
            with pytest.raises(IndexError, match=f"index {i + 10} "):
                f(x, np.array([0, i + 10]))
            return 3.0
        return f(x, np.array([1, 2]))

    assert {float(x) for x in together(work)} == {3.0}


def test_functions_that_call_each_other_are_traced_at_once():
    seen = threading.Barrier(2)

    def up(x, n):
        if n == 1:
            seen.wait(10.0)
        return x if n == 0 else down_jit(x, n - 1) + 1.0

    def down(x, n):
        if n == 1:
            seen.wait(10.0)
        return x if n == 0 else up_jit(x, n - 1) * 2.0

    up_jit, down_jit = ft.jit(up, static_argnums=1), ft.jit(down, static_argnums=1)
    actual = {}
    workers = [
        threading.Thread(target=lambda f=f: actual.setdefault(f, float(f(3.0, 1))), daemon=True)
        for f in (up_jit, down_jit)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30.0)
    assert actual == {up_jit: 4.0, down_jit: 6.0}
