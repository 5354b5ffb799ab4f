"""Kernels do what they did: a program without what an optimisation saves is right, and slow."""

import json
import platform

import numpy as np
import pytest
from kernel_work import CASES, COUNTS, FILE, MIXED, OTHERS, VARIANTS, row

import functrans as ft
from functrans.runtime.config import config

ROWS = json.loads(FILE.read_text())
#: Texts contain where tuples have their items: at another place from CPython 3.14 on.
HAVE_OTHER_TUPLES = tuple.__basicsize__ != 24
#: Texts of mixed programs contain our own functions for x86-64, which take their vectors otherwise on other processors.
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", CASES)
def test_a_program_does_what_it_did(name):
    """``python -m tests.lowering.kernel_work`` writes new numbers; whether they are better shows in the change."""
    ignored = {"text"} if HAVE_OTHER_TUPLES or (name in MIXED and not IS_X86) else set()
    for now, before in zip(row(name), ROWS[name], strict=True):
        changes = {
            k: (a, b) for k, a, b in zip(COUNTS, before, now, strict=True) if a != b and k not in ignored
        }
        assert changes == {}, "before and now"


RIGHT = {**OTHERS, **VARIANTS}
# Half precision in another order of operations; single precision.
ROUNDED = {"halves": 2e-2, "halved": 1e-3, "singles": 1e-5}


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    ("name", "backend"), [(n, "llvm" if n in VARIANTS and i % 2 else "python") for i, n in enumerate(RIGHT)]
)
def test_what_it_computes_is_what_python_computes(name, backend):
    f, *args = RIGHT[name]
    with config.patch(backend=backend):
        actual = ft.jit(lambda *args: f(*args))(*args)
    with ft.disable_jit():
        expected = f(*map(ft.numpy.asarray, args))
    rtol = ROUNDED.get(name.split()[-1], 1e-9)
    for a, b in zip(*map(ft.tree_util.tree_leaves, (actual, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9 if rtol < 1e-6 else rtol)
