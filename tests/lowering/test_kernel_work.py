"""No kernel does more than it did: a program without what an optimisation saves is right, and slow."""

import json

import pytest
from kernel_work import CASES, COUNTS, FILE, counted

ALLOWED = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_program_does_no_more_than_it_did(name):
    """If it has to, ``python -m tests.lowering.kernel_work`` writes the new numbers."""
    now, before = counted(name), dict(zip(COUNTS, ALLOWED[name], strict=True))
    assert {k: n for k, n in now.items() if n > before[k]} == {}, before
