"""Wrong rules are caught: quickly one of each kind, slowly one of each in each operation. Right ones raise no alarm."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import alarms
import mutants

ALL = list(mutants.mutants())
QUICK = {m.kind: m for m in reversed(ALL) if m.operation in ("sin", "add") and m.form != "custom_jvp"}


def in_turn(all_mutants):
    """Each kind in each operation, in one of the forms in which there is one: they take turns."""
    forms = {}
    for m in all_mutants:
        forms.setdefault((m.operation, m.kind), []).append(m)
    return [of[i % len(of)] for i, of in enumerate(forms.values())]


def test_there_are_twelve_kinds_in_sixty_operations_and_four_forms():
    assert {m.kind for m in ALL} == {*mutants.KINDS, *mutants.OTHERS} == set(QUICK)
    assert len(QUICK) == 12
    assert len({m.operation for m in ALL if m.form != "numba_call"}) >= 60
    assert {m.form for m in ALL} == {*mutants.FORMS, "numba_call"}


@pytest.mark.parametrize("mutant", QUICK.values(), ids=lambda m: m.id)
def test_one_of_each_kind_is_caught(mutant):
    assert mutants.caught(mutant, 5) is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", in_turn(ALL), ids=lambda m: m.id)
def test_each_kind_is_caught_in_each_operation(mutant):
    assert mutants.caught(mutant) is not None


@pytest.mark.slow
@pytest.mark.parametrize("right", alarms.chosen(), ids=lambda r: r.name)
def test_right_rules_raise_no_alarm(right):
    assert not alarms.alarm(right, 0)
