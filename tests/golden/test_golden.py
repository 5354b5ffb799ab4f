"""How jaxprs and kernels print, kept as files beside this one.

After a change that is meant to alter them, write them anew and read the difference::

    FUNCTRANS_REGENERATE=1 python -m pytest tests/golden
    git diff tests/golden
"""

import os
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.ir import show

HERE = Path(__file__).parent
N = 100


def logistic(w, x, y):
    """The loss of a logistic regression."""
    z = x @ w
    return fnp.mean(fnp.log1p(fnp.exp(-z * y))) + 0.01 * fnp.sum(w**2)


def softmax(x):
    """Rows of numbers to rows of probabilities."""
    e = fnp.exp(x - fnp.max(x, axis=-1, keepdims=True))
    return e / fnp.sum(e, axis=-1, keepdims=True)


def lookup(table, i, scale):
    """A gather whose indices are checked, and the update of what was read."""
    rows = table[i]
    return table.at[i].add(rows * scale), fnp.sum(rows)


def decay(rate, x, dt):
    """The last point of a differential equation, solved in steps."""
    return fnp.sum(lax.scan(lambda x, h: (x - h * rate * fnp.sin(x), None), x, dt)[0])


def halvings(x):
    """A loop whose number of iterations depends on what it computes."""
    return fnp.sum(lax.while_loop(lambda x: fnp.sum(x) > 1.0, lambda x: 0.5 * x * fnp.cos(x), x))


def weighted(x, w):
    """Where numbers of two bytes are widened and rounded: in loads, stores, comparisons, sums and products."""
    h = fnp.tanh(x @ w)
    return h, fnp.sum(fnp.where(h > 0.5, h * 1.1, h), axis=1)


def bfloat16_operands():
    pytest.importorskip("ml_dtypes")
    return [ft.ShapeDtypeStruct(x.shape, ft.bfloat16) for x in LOW]


LOGISTIC = (np.zeros(5), np.ones((N, 5)), np.ones(N))
DECAY = (0.5, np.ones(3), np.full(N, 0.1))
LOW = (np.ones((N, 20), np.float16), np.ones((20, 30), np.float16))
LOOKUP = (np.ones((N, 3)), np.arange(20), 2.0)
CASES = {
    "jaxpr_softmax": lambda: str(ft.make_jaxpr(softmax)(np.ones((N, 7)))),
    "jaxpr_grad_of_jit_logistic": lambda: str(ft.make_jaxpr(ft.grad(ft.jit(logistic)))(*LOGISTIC)),
    "jaxpr_lookup_with_lines": lambda: show(ft.make_jaxpr(lookup)(*LOOKUP), source=True),
    "kernel_softmax": lambda: ft.jit(softmax).lower(np.ones((N, 7))).as_text("python"),
    "kernel_grad_of_logistic": lambda: ft.jit(ft.grad(logistic)).lower(*LOGISTIC).as_text("python"),
    "kernel_grad_of_scan": lambda: ft.jit(ft.grad(decay)).lower(*DECAY).as_text("python"),
    "kernel_grad_of_while_loop": lambda: ft.jit(ft.grad(halvings)).lower(np.ones(3)).as_text("python"),
    "kernel_float16": lambda: ft.jit(weighted).lower(*LOW).as_text("python"),
    "kernel_bfloat16": lambda: ft.jit(weighted).lower(*bfloat16_operands()).as_text("python"),
    "kernel_lookup": lambda: ft.jit(lookup).lower(*LOOKUP).as_text("python"),
}


@pytest.mark.parametrize("name", CASES)
def test_prints_as_before(name):
    path = HERE / f"{name}.txt"
    found = CASES[name]().rstrip() + "\n"
    if os.environ.get("FUNCTRANS_REGENERATE"):
        path.write_text(found)
    assert found == path.read_text(), f"{path.name} differs; see this file's docstring"


@pytest.mark.parametrize("name", CASES)
def test_prints_the_same_twice(name):
    assert CASES[name]() == CASES[name]()
