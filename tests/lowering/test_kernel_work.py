"""Kernels do what they did: a program without what an optimisation saves is right, and slow."""

import json

import pytest
from kernel_work import CASES, COUNTS, FILE, row

ROWS = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_program_does_what_it_did(name):
    """``python -m tests.lowering.kernel_work`` writes new numbers; whether they are better shows in the change."""
    for now, before in zip(row(name), ROWS[name], strict=True):
        changes = {k: (a, b) for k, a, b in zip(COUNTS, before, now, strict=True) if a != b}
        assert changes == {}, "before and now"
