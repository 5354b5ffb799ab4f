"""The fixture `check_derivatives`, in sessions of pytest of their own."""

import shutil
import textwrap
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import functrans.testing

pytest_plugins = ["pytester"]

RULE = """
    import numpy as np
    import pytest
    import functrans as ft
    import functrans.numpy as fnp

    class Wrong(ft.Function):
        @staticmethod
        def forward(x):
            return fnp.sin(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved
            return g * fnp.cos(x) * fnp.where(x > WRONG_FROM, 1.001, 1.0)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Write a test file and run pytest with the plugin, as it is loaded where functrans is installed."""
    more = []
    if not any(e.value == "pytest_functrans" for e in entry_points(group="pytest11")):
        source = Path(functrans.testing.__file__).with_name("pytest_plugin.py")
        shutil.copy(source, pytester.path / "pytest_functrans.py")
        more = ["-p", "pytest_functrans"]
    monkeypatch.syspath_prepend(str(pytester.path))

    def run(text, *options, wrong_from=0.5):
        path = Path(pytester.path, "test_written.py")
        path.write_text(textwrap.dedent(text).replace("WRONG_FROM", str(wrong_from)))
        return pytester.runpytest_subprocess(
            "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *more, *options
        )

    return run


def test_a_failure_names_the_law_the_place_and_the_smallest_point(run):
    test = """
    @pytest.mark.derivatives(order=1)
    def test_wrong(check_derivatives):
        weights = {"w": np.array([[0.712, 0.3, 1.234], [0.25, 0.125, 0.0625]])}
        check_derivatives(lambda params: fnp.sum(Wrong.apply(params["w"])), weights, modes="rev")
    """
    result = run(RULE + test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*the law * does not hold*",
        "*argument 0 ('params')?'w'?*",
        "*reproduce: functrans.testing.vjp_is_slope(*",
        "*the smallest example found: <lambda>({'w': array(??1.??)})*",
    ])  # fmt: skip


def test_more_points_find_what_the_first_does_not(run):
    test = """
    def test_it(check_derivatives):
        check_derivatives(Wrong.apply, np.array([0.9, 0.8]), order=1, modes=["rev"])
    """
    run(RULE + test, wrong_from=0.95).assert_outcomes(passed=1)
    run(RULE + test, "--functrans-examples=20", wrong_from=0.95).assert_outcomes(failed=1)
    run(RULE + test, "--functrans-examples=0").assert_outcomes(failed=1)


def test_single_precision_is_tested_where_it_is_asked_for(run):
    test = """
    import numpy as np
    import functrans.numpy as fnp

    SEEN = []

    def f(x):
        SEEN.append(str(x.dtype))
        return fnp.sin(x)

    def test_it(check_derivatives):
        check_derivatives(f, np.array([0.3]), order=1, laws="jvp_is_slope")
        assert {"float64", "float32"} <= set(SEEN)
    """
    run(test).assert_outcomes(failed=1)
    run(test, "--functrans-float32").assert_outcomes(passed=1)


def test_a_first_call_misses_no_deadline(run):
    test = """
    import functrans.numpy as fnp
    from functrans.testing import check
    from hypothesis import given, settings, strategies as st

    @given(st.floats(0.5, 1.0))
    def test_slow_at_first(x):
        check(fnp.exp, x, order=1)

    @settings(deadline=123)
    @given(st.floats(0.5, 1.0))
    def test_own_settings_stay(x):
        import hypothesis

        assert hypothesis.settings().deadline is None

    def test_the_profile():
        inner = test_slow_at_first._hypothesis_internal_use_settings
        assert inner.deadline is None
        assert test_own_settings_stay._hypothesis_internal_use_settings.deadline.total_seconds() == 0.123
    """
    result = run(test, "-k", "not own", "--hypothesis-seed=1")
    result.assert_outcomes(passed=2, deselected=1)


@pytest.mark.slow
def test_the_example(run):
    example = Path(__file__).parents[2] / "examples" / "test_my_rule.py"
    run(example.read_text()).assert_outcomes(passed=8)


def test_pytest_without_such_tests_does_not_load_functrans(run):
    test = """
    import sys

    def test_it():
        assert "functrans" not in sys.modules
    """
    run(test).assert_outcomes(passed=1)


def test_options_that_check_does_not_have(run):
    result = run("""
    import numpy as np, pytest, functrans.numpy as fnp

    @pytest.mark.derivatives(ordre=2)
    def test_misspelt(check_derivatives):
        check_derivatives(fnp.sin, np.array([0.3]))

    @pytest.mark.derivatives(2)
    def test_by_position(check_derivatives):
        check_derivatives(fnp.sin, np.array([0.3]))

    def test_call(check_derivatives):
        check_derivatives(fnp.sin, np.array([0.3]), tolerance=1e-3)
    """)
    result.assert_outcomes(errors=2, failed=1)
    text = result.stdout.str()
    assert "the marker derivatives: there is no option 'ordre'; options are those of check: order" in text
    assert "the marker derivatives takes options by name, as in order=2; got 2" in text
    assert (
        "check_derivatives: there is no option 'tolerance'; options are those of check: order, modes" in text
    )
