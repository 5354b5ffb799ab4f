"""``python -m functrans.bisect``: the optimisation that changes a script's result is found and named."""

import subprocess
import sys

import pytest

#: A script in which a pass is broken: scans that count start one too late.
BROKEN = """
import numpy as np
import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.loops import while_kernel

right = while_kernel._bounds

def wrong(*args):
    bounds = right(*args)
    return bounds and (bounds[0], bounds[1] - 1, *bounds[2:])

while_kernel._bounds = wrong
f = ft.jit(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.5), (0, 1.0))[1])
print("result:", float(f(5)))
"""
#: One whose numbers depend on the order of additions alone.
ROUNDED = """
import numpy as np
import functrans as ft
import functrans.numpy as fnp

x = np.random.default_rng(0).normal(size=10_000)
print(repr(float(ft.jit(lambda x: fnp.sum(fnp.exp(x)))(x))))
"""
#: One in which an early pass finds wrong places, from which a later one reads.
MISLED = """
import numpy as np
import functrans as ft
from functrans.passes.indices import index_sums

right = index_sums._result
index_sums._result = lambda op, x, y: right("add" if op == "sub" else op, x, y)  # differences are taken for sums

def f(x):
    def step(i, x):
        return x.at[9 - i].set(np.sin(x[i]) * x[8 - i])
    return ft.lax.fori_loop(0, 8, step, x).sum()

print(ft.jit(ft.grad(f))(np.linspace(0.1, 1.0, 10)))
"""
RANDOM = "import random\nprint(random.random())"


def search(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "functrans.bisect", str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_the_broken_pass_is_named(tmp_path):
    done = search(tmp_path, BROKEN)
    assert done.returncode == 0, done.stderr
    assert "\ncounted_loops (control.loops.while_kernel)" in done.stdout
    assert "FUNCTRANS_WITHOUT=counted_loops" in done.stdout
    assert "result: 7.59375" in done.stdout  # 1.5 ** 5
    assert "result: 5.0625" in done.stdout  # 1.5 ** 4


@pytest.mark.slow
def test_a_pass_that_misleads_another_is_named(tmp_path):
    done = search(tmp_path, MISLED)
    assert done.returncode == 0, done.stderr
    assert "\neconomy (control.residuals.partitioner)" in done.stdout
    assert "without read_back alone (control.residuals.read_back)" in done.stdout


def test_rounding_is_no_difference(tmp_path):
    done = search(tmp_path, ROUNDED)
    assert done.returncode == 1
    assert done.stdout == "no optimisation changes the result\n"


def test_a_script_that_differs_from_run_to_run_cannot_be_judged(tmp_path):
    done = search(tmp_path, RANDOM)
    assert done.returncode == 2
    assert "does not always do the same" in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "last"), [("assert False", 1, "AssertionError"), ("raise SystemExit(3)", 3, "")]
)
def test_a_script_that_always_fails(tmp_path, text, code, last):
    done = search(tmp_path, text)
    assert done.returncode == 1
    assert "no optimisation changes" in done.stdout
    assert f"fails with and without them (exit code {code})" in done.stdout
    assert last in done.stdout
