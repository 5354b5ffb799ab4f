"""The pytest plugin: the fixture `check_derivatives`, the marker ``derivatives``, and their options.

pytest reads this file at each start, under the name ``pytest_functrans``. So it imports functrans only where a test
asks for the fixture.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `check_derivatives`."""
    group = parser.getgroup("functrans", "derivatives (the fixture check_derivatives)")
    add = group.addoption
    add(
        "--functrans-examples",
        type=int,
        default=1,
        metavar="N",
        help="points to test at, the first as written",
    )
    add("--functrans-seed", type=int, default=0, metavar="SEED", help="seed of the points and of directions")
    add("--functrans-float32", action="store_true", help="test each point in single precision, too")
    add(
        "--functrans-time",
        type=float,
        metavar="SECONDS",
        help="draw no more points of a check after this time",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "derivatives(order=2, modes=('fwd', 'rev'), ...): options of functrans.testing.check, for check_derivatives",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Hypothesis in modules that use functrans have no deadline: a first call compiles.

    Settings of the user's own stay: a profile that was loaded, and those of a test.
    """
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is None or "functrans" not in sys.modules:
        return
    settings = hypothesis.settings
    if settings.default != settings.get_profile("default"):
        return
    settings.register_profile("functrans", settings.default, deadline=None)
    profile = settings.get_profile("functrans")
    for test in {item.obj: None for item in items if isinstance(item, pytest.Function)}:
        if hypothesis.is_hypothesis_test(test) and _uses_functrans(sys.modules.get(test.__module__)):
            with suppress(hypothesis.errors.InvalidArgument):  # it has settings
                profile(getattr(test, "__func__", test))


def _uses_functrans(module: ModuleType | None) -> bool:
    values = () if module is None else list(vars(module).values())
    names = [x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", "") for x in values]
    return any(str(name).partition(".")[0] == "functrans" for name in names)


@pytest.fixture
def check_derivatives(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`functrans.testing.check`, at the points that the command line asks for; a failure is made small.

    ``check_derivatives(f, *args, **options)`` takes what `check` takes. The marker ``derivatives`` has options for all
    calls in a test.
    """
    examples = importlib.import_module("functrans.testing.examples")
    options: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("derivatives"))):
        examples.check_options("the marker derivatives", mark.args, mark.kwargs)
        options |= mark.kwargs
    asked = {
        name: request.config.getoption(f"--functrans-{name}")
        for name in ("examples", "seed", "float32", "time")
    }

    def check_derivatives(f: Callable[..., Any], *args: Any, **own: Any) -> None:
        __tracebackhide__ = True
        examples.check_options("check_derivatives", (), own)
        examples.check_examples(f, args, {**options, **own}, **asked)

    return check_derivatives
