"""The main thread, in which signal handlers raise, never holds the lock of LLVM."""

import gc
import os
import subprocess
import sys

import pytest

from functrans.lowering.undisturbed import Disposal

WHO_TAKES_THE_LOCK = """
import gc, os, tempfile, threading, traceback
import numpy as np
import functrans as ft, functrans.numpy as fnp
from functrans import export, lax
from llvmlite.binding import ffi

found = []

def taken():
    if threading.current_thread() is threading.main_thread():
        found.append("".join(traceback.format_stack(limit=8)))

ffi.register_lock_callback(taken, lambda: None)

def program(directory):
    slope = ft.jit(ft.value_and_grad(lambda x: fnp.sum(fnp.sin(x) @ fnp.ones((3, 3)) * fnp.exp(x))))
    slope(np.ones(3)), slope(np.ones(3))
    solve = lambda i, c: fnp.linalg.solve(c + fnp.eye(3), c)
    ft.jit(lambda x, n: lax.fori_loop(0, n, solve, x))(np.ones((3, 3)), 3)
    ft.jit(lambda x: x @ x, donate_argnums=0)(fnp.ones((300, 300)))
    with ft.config.patch(num_threads=2):
        ft.jit(lambda x: fnp.sin(x) * 2)(np.ones(1_000_000))
    export.save(directory + "/cos", lambda x: fnp.cos(x) * 3.0, np.ones(3))
    export.load(directory + "/cos")(np.ones(3))

for cached in (True, False):
    with ft.config.patch(cache=cached), tempfile.TemporaryDirectory() as directory:
        program(directory)
        ft.clear_caches()
        program(directory)
gc.collect()
print(*set(found), sep="\\n")
assert not found
"""


@pytest.mark.slow
def test_the_main_thread_never_takes_the_lock_of_llvm(tmp_path):
    environment = {**os.environ, "FUNCTRANS_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", WHO_TAKES_THE_LOCK], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_resources_go_after_their_owners_when_asked():
    class Owner:
        pass

    gone = []

    class Resource:
        def __del__(self):
            gone.append(1)

    disposal = Disposal()
    owner, other = Owner(), Owner()
    disposal.hold(owner, Resource())
    disposal.hold(other, Resource())
    disposal.run()
    del owner
    gc.collect()
    assert (len(disposal), gone) == (2, [])
    disposal.run()
    assert (len(disposal), gone) == (1, [1])
