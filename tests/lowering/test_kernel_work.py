"""Kernels do what they did: a program without what an optimisation saves is right, and slow."""

import json

import numpy as np
import pytest
from kernel_work import CASES, COUNTS, FILE, OTHERS, row

import functrans as ft
from functrans.runtime.config import config

ROWS = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_program_does_what_it_did(name):
    """``python -m tests.lowering.kernel_work`` writes new numbers; whether they are better shows in the change."""
    for now, before in zip(row(name), ROWS[name], strict=True):
        changes = {k: (a, b) for k, a, b in zip(COUNTS, before, now, strict=True) if a != b}
        assert changes == {}, "before and now"


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", OTHERS)
def test_what_it_computes_is_what_python_computes(name):
    f, *args = OTHERS[name]
    with config.patch(backend="python"):
        actual = ft.jit(lambda *args: f(*args))(*args)
    with ft.disable_jit():
        expected = f(*map(ft.numpy.asarray, args))
    for a, b in zip(*map(ft.tree_util.tree_leaves, (actual, expected)), strict=True):
        rtol = 1e-3 if a.dtype.itemsize < 8 and a.dtype.kind == "f" else 1e-9
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
