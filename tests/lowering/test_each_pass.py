"""Each pass: a program that it changes, with equal results; in strict mode those that move sums change nothing."""

import numpy as np
import pytest
from pass_programs import PROGRAMS

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.run.executable import KernelUnit, compile_jaxpr
from functrans.runtime.config import config
from functrans.runtime.passes import PASSES

#: Those whose programs are large.
BIG = ("teams", "blocks")
#: Another pass does the same where sums may be moved.
OPTIONS = {"totals": {"strict": True}}
#: They do nothing if sums must be in order.
IN_ORDER = ("in_place_sums", "sums_of_windows", "repeated_sums", "mirrored_sums", "holding", "hand_on")
CHECKED = [p for p in PASSES if p.stage != "code"]


def compiled(f, args, **options):
    """What is compiled, and its result."""
    with config.patch(num_threads=2, checked=False, **options):
        jitted = ft.jit(lambda *args: f(*args))
        executable = compile_jaxpr(jitted.lower(*args).jaxpr).compile()
        units = [u for u in executable.steps if isinstance(u, KernelUnit)]
        return (executable.as_text(), [list(u.scratch) for u in units]), jitted(*args)


def leaves_agree(compare, *trees):
    for a, b in zip(*map(ft.tree_util.tree_leaves, trees), strict=True):
        compare(a, b)


def test_each_pass_has_a_program():
    missing = {p.name for p in CHECKED} - {*PROGRAMS}
    assert not missing, f"give it a program that it changes, in tests/lowering/pass_programs.py: {missing}"


@pytest.mark.parametrize("which", CHECKED, ids=lambda p: p.name)
def test_a_pass_changes_its_program_and_no_result(which):
    f, *args = PROGRAMS[which.name]
    options, off = OPTIONS.get(which.name, {}), frozenset([which.name])
    with_it, result = compiled(f, args, **options)
    without, other = compiled(f, args, without=off, **options)
    assert with_it != without
    leaves_agree(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), result, other)
    with ft.disable_jit():
        plain = f(*map(fnp.asarray, args)) if args[0].size < 1 << 20 else result
    leaves_agree(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), result, plain)


@pytest.mark.parametrize("which", [p for p in CHECKED if p.name not in BIG], ids=lambda p: p.name)
def test_a_pass_in_strict_mode(which):
    """Passes that move sums do nothing; results of the others are the same, bit for bit."""
    f, *args = PROGRAMS[which.name]
    with_it, result = compiled(f, args, strict=True)
    without, other = compiled(f, args, strict=True, without=frozenset([which.name]))
    if which.name in IN_ORDER:
        assert with_it == without
    if which.exact:
        leaves_agree(np.testing.assert_array_equal, result, other)
