"""Workers: joblib, pools of processes by fork and by spawn; IPython, a notebook. Scripts run as users run theirs."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from itertools import combinations, permutations

import nbclient
import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import functrans as ft
import functrans.numpy as fnp
from functrans.core.trace import current_trace, eval_trace
from functrans.runtime import context

PROGRAM = '''
import dataclasses, functools, multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import functrans as ft, functrans.numpy as fnp

@ft.tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    w: object
    b: object

class Cube(ft.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x**2 * g

@ft.custom_jvp
def softplus(x):
    return fnp.log1p(fnp.exp(x))

@softplus.defjvp
def _(primals, tangents):
    return softplus(*primals), tangents[0] / (1.0 + fnp.exp(-primals[0]))

@ft.jit
def loss(p, x):
    return fnp.sum(softplus(p.w * x) + Cube.apply(p.b * x))

slope = ft.jit(ft.grad(loss))

def fit(seed):
    """Reads a jitted global."""
    p = slope(Params(fnp.asarray(0.1 * seed), fnp.asarray(0.5)), np.arange(3.0))
    return Params(p.w, p.b)

def failing(x):
    return ft.grad(lambda x: x * 2.0)(x)  # the line of the worker

def check(found):
    for seed, p in enumerate(found):
        expected = fit(seed)
        assert type(p) is Params and isinstance(p.w, ft.Array), p
        np.testing.assert_allclose([p.w, p.b], [expected.w, expected.b], rtol=1e-14)

def check_error(call):
    try:
        call()
    except ft.errors.GradientError as error:
        assert "it must return a scalar, but returned an array of shape (3,)" in str(error), error
        # The worker has no source of functions that came by value: the file is named, or the number of the line.
        text, line = str(error), error.source.line
        assert text.count("# the line of the worker") == 1 or f"<dynamic-code>:{line}, in failing" in text, error
        assert error.source.function == "failing" and line > 0
    else:
        raise AssertionError("no error arrived")
'''

RUNS = {
    "joblib": """
import joblib
if __name__ == "__main__":
    scale = 2.0
    local = ft.grad(lambda x: scale * x**2)
    with joblib.Parallel(2) as parallel:
        check(parallel(joblib.delayed(fit)(s) for s in range(3)))
        assert parallel(joblib.delayed(f)(3.0) for f in (local, ft.jit(local))) == [12.0, 12.0]
        check_error(lambda: parallel([joblib.delayed(failing)(np.ones(3))]))
    print("done")
""",
    "pool": """
def started(method):
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        check(pool.map(fit, range(3)))
        assert pool.submit(ft.grad(softplus), 0.0).result() == 0.5  # of functions by name
        assert list(pool.map(slope, [Params(1.0, 2.0)], [np.ones(2)]))[0].b == slope(Params(1.0, 2.0), np.ones(2)).b
        check_error(lambda: pool.submit(failing, np.ones(3)).result())
    with context.Pool(2) as pool:
        check(pool.map(fit, range(3)))
        check_error(lambda: pool.map(failing, [np.ones(3)]))

if __name__ == "__main__":
    if sys.argv[1] == "fork":
        fit(0)  # compiled before, with Numba and LLVM in memory
    started(sys.argv[1])
    print("done")
""",
}


def run(folder, name, *args):
    script = folder / "script.py"
    script.write_text(PROGRAM + RUNS[name])
    # From a folder where no worker finds the script by the name of a module.
    ended = subprocess.run(
        [sys.executable, str(script), *args],
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.stdout == "done\n", ended.stderr
    assert ended.returncode == 0


@pytest.mark.slow
def test_joblib(tmp_path):
    run(tmp_path, "joblib")


FORK_AT_THE_FIRST_CALL = """
import importlib, os, sys, threading, time
delay, *names = sys.argv[1:]
for name in names:
    importlib.import_module(name)
import functrans as ft
import numpy as np

thread = threading.Thread(target=lambda: ft.jit(lambda x: x * 2.0)(np.ones(3)))
thread.start()
time.sleep(float(delay))
child = os.fork()
if not child:
    os._exit(int(ft.jit(lambda x: x + 1.0)(2.0)))
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


#: Modules that register handlers of forks, or hold locks that one must wait for.
WITH_HANDLERS = ["functrans", "logging", "threading", "concurrent.futures.thread", "numba"]
ROTATED = [WITH_HANDLERS[k:] + WITH_HANDLERS[:k] for k in range(5)]
#: Any three of them are imported in all six orders, and any two, with each delay, in both.
ORDERS = [[], ["multiprocessing", "random"], *ROTATED, *[order[::-1] for order in ROTATED]]


def test_the_orders_of_imports_have_all_orders_of_three():
    found = {three for order in ORDERS[2:] for three in combinations(order, 3)}
    assert found == set(permutations(WITH_HANDLERS, 3))


@pytest.mark.wide(4)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_a_fork_while_another_thread_makes_the_first_call(number):
    """Which handlers of forks were registered before those of functrans must not matter."""
    delay = ("0", "0.03", "0.1", "0.2", "0.4")[number % 5]
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_AT_THE_FIRST_CALL, delay, *ORDERS[number]],
        env={**os.environ, "FUNCTRANS_CACHE": str(number // 5 % 2)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (found.returncode, found.stdout) == (0, "3\n"), (ORDERS[number], found.stderr)


@pytest.mark.wide(2)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes(tmp_path, method):
    run(tmp_path, "pool", method)


def in_child(f, patience=120.0):
    """What a forked child of this process computes, by the sign it ends with."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if f() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "waited for ever"


def computes(f, n):
    return f(np.ones(4), -n) == -10.0 * n


@pytest.mark.wide(2)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_child_forked_while_others_trace_and_compile(tmp_path, monkeypatch, on_disk):
    monkeypatch.setattr(ft.config, "cache", on_disk)
    monkeypatch.setattr(ft.config, "cache_dir", str(tmp_path))
    stop = threading.Event()
    shared = ft.jit(lambda x, n: fnp.sum(fnp.cumsum(x) * n), static_argnums=1)

    def compile_on(number):
        k = number
        while not stop.is_set():
            shared(np.ones(4), k := k + 2)
            ft.clear_caches()

    threads = [threading.Thread(target=compile_on, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    try:
        for n in range(1, 7):
            time.sleep(0.05)
            assert in_child(partial(computes, shared, n)) == 0
            assert in_child(lambda: ft.grad(lambda x: Child.apply(x))(fnp.asarray(2.0)) == 4.0) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class Child(ft.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.0 * x * g


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_inside_a_traced_function():
    actual = []

    def f(x):
        actual.append(in_child(lambda: ft.jit(lambda y: y + 1.0)(2.0 * x) is not None))
        return x * x

    assert ft.jit(f)(3.0) == 9.0
    assert actual == [0]
    assert current_trace.get() is eval_trace


# --- IPython --------------------------------------------------------------------------------------------------


def test_ipython():
    """Cells redefine functions, and errors name the line of the cell."""
    shell = InteractiveShell.instance()
    try:
        for cell in (
            "import functrans as ft, functrans.numpy as fnp",
            "@ft.jit\ndef f(x):\n    return 2.0 * x",
            "first = f(3.0)",
            "@ft.jit\ndef f(x):\n    return 5.0 * x",
            "second = f(3.0), ft.grad(f)(1.0)",
            "import cloudpickle\nthird = cloudpickle.loads(cloudpickle.dumps(ft.grad(f)))(1.0)",
        ):
            shell.run_cell(cell).raise_error()
        values = shell.user_ns
        assert (values["first"], values["second"], values["third"]) == (6.0, (15.0, 5.0), 5.0)
        failed = shell.run_cell(
            "def g(x):\n    return 1.0 if x > 0 else x  # the line in the cell\nft.jit(g)(1.0)"
        )
        assert isinstance(failed.error_in_exec, ft.errors.TracerBoolConversionError)
        assert "# the line in the cell" in str(failed.error_in_exec)
        repr_of_grad = shell.run_cell("ft.grad(f)").result
        assert repr(repr_of_grad) == "<grad of jit of f>"
    finally:
        InteractiveShell.clear_instance()


CELLS = (
    "import functrans as ft, functrans.numpy as fnp, numpy as np",
    "@ft.jit\ndef loss(x):\n    return fnp.sum(fnp.sin(x) ** 2)\nft.grad(loss)(np.zeros(2))",
    "import joblib\njoblib.Parallel(2)(joblib.delayed(ft.grad(loss))(np.zeros(2) + s) for s in range(2))[0]",
    """
import _thread, threading
from functrans import lax
forever = ft.jit(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: 0.5 * c + 1.0, x))
threading.Timer(0.3, _thread.interrupt_main).start()
try:
    forever(1.0)
except KeyboardInterrupt:
    print("interrupted", loss(np.zeros(2)))
""",
    "ft.jit(lambda x: float(x))(1.0)",
)


@pytest.mark.slow
def test_a_notebook():
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(textwrap.dedent(c).strip()) for c in CELLS]
    )
    client = nbclient.NotebookClient(notebook, timeout=240, allow_errors=True, kernel_name="python3")
    client.execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[1][-1]["data"]["text/plain"] == "Array([0., 0.])"
    assert outputs[2][-1]["data"]["text/plain"] == "Array([0., 0.])"
    assert outputs[3][-1]["text"] == "interrupted 0.0\n"
    assert outputs[4][-1]["ename"] == "TracerScalarConversionError"
    assert "ft.jit(lambda x: float(x))(1.0)" in outputs[4][-1]["evalue"]


def test_a_lock_that_appears_during_a_fork_is_not_released(monkeypatch):
    """Another thread may import llvmlite meanwhile."""
    monkeypatch.setattr(context, "compiling", threading.RLock())
    context._before_fork()
    monkeypatch.setattr(context, "_native_locks", lambda: [threading.RLock()])
    context._after_fork()
    free = []
    thread = threading.Thread(target=lambda: free.append(context.compiling.acquire(blocking=False)))
    thread.start()
    thread.join()
    assert free == [True]
