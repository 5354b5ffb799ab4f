"""`checked`: what a function's check does on its first call, when it is written, and afterwards."""

from __future__ import annotations

import inspect
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import functrans.numpy as fnp
from functrans.errors import ArgumentError
from functrans.frontend.checked import checked


def fresh() -> Callable[..., Any]:
    @checked
    def f(x: int, /, y: float = 2.0, *rest: int, flag: bool = False, **others: Any) -> Any:
        """Return all."""
        return x, y, rest, flag, others

    return f


def test_the_first_call_is_like_the_others():
    f = fresh()
    for _ in range(3):
        assert f(1) == (1, 2.0, (), False, {})
        assert f(1, 3.0, 4, 5, flag=True, z=6) == (1, 3.0, (4, 5), True, {"z": 6})


@pytest.mark.parametrize("calls_before", [0, 1])
def test_errors_are_the_same_on_the_first_call(calls_before):
    for arguments, named, message in (
        ((1,), {"flag": "no"}, "f: flag must be True or False"),
        ((1, 2.0, "three"), {}, "f: rest must be an integer"),
    ):
        f = fresh()
        for _ in range(calls_before):
            f(1)
        with pytest.raises(ArgumentError, match=message) as caught:
            f(*arguments, **named)
        files = [frame.filename for frame in traceback.extract_tb(caught.tb)]
        assert files == [__file__]
    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'x'"):
        fresh()()


def test_it_has_the_signature_and_the_name_before_and_after():
    f = fresh()
    for _ in range(2):
        assert str(inspect.signature(f)) == (
            "(x: 'int', /, y: 'float' = 2.0, *rest: 'int', flag: 'bool' = False, **others: 'Any') -> 'Any'"
        )
        assert (f.__name__, f.__doc__, f.__module__) == ("f", "Return all.", __name__)
        f(1)
    assert pickle.loads(pickle.dumps(fnp.sum)) is fnp.sum


def test_threads_may_call_it_first_together():
    for _ in range(20):
        f, start, results = fresh(), threading.Barrier(8), []

        def call(f=f, start=start, results=results):
            start.wait()
            results.append(f(1, flag=True))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [(1, 2.0, (), True, {})] * 8
