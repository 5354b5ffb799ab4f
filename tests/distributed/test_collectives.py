"""Collectives on all backends against NumPy, and what happens when ranks do not do the same."""

import runpy
import threading
from pathlib import Path

import numpy as np
import pytest

from functrans.distributed import Communicator, make_mesh, run_threads
from functrans.errors import ArgumentError, ArgumentValueError, CollectiveError, ShardingError
from functrans.runtime.config import config

check = runpy.run_path(str(Path(__file__).with_name("programs") / "collectives.py"))["check"]


def test_alone():
    check(make_mesh((1, 1), ("dp", "tp"), backend="self"))


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), pytest.param((2, 2), marks=pytest.mark.slow)])
def test_threads(shape):
    run_threads(shape, ("dp", "tp")[: len(shape)], check)
    assert not [t for t in threading.enumerate() if "functrans" in t.name]


def test_two_processes(on_ranks):
    done = on_ranks(2, "collectives.py", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all right") == 2


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_four_processes(on_ranks, shape):
    done = on_ranks(4, "collectives.py", *shape)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all right") == 4


# --- meshes -------------------------------------------------------------------------------------------------


def test_ranks_count_along_the_last_axis_first():
    def where(mesh):
        both = {axes: mesh.communicator(axes).rank for axes in [("a", "b"), ("b", "a"), ("c", "a")]}
        return mesh.rank, *map(mesh.axis_index, "abc"), *both.values()

    found = run_threads((2, 3, 2), ("a", "b", "c"), where)
    places = np.stack(np.unravel_index(np.arange(12), (2, 3, 2)), 1)
    for rank, (a, b, c) in enumerate(places.tolist()):
        assert found[rank] == (rank, a, b, c, 3 * a + b, 2 * b + a, 2 * c + a)


@pytest.mark.parametrize(
    ("axes", "text"), [(("x",), "no axis 'x'. Its axes are 'dp', 'tp'"), (("dp", "dp"), "named twice")]
)
def test_axes_that_do_not_exist(axes, text):
    mesh = make_mesh((1, 1), ("dp", "tp"), backend="self")
    with pytest.raises(ShardingError, match=text):
        mesh.communicator(axes)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (CollectiveError, "has 4 ranks, but there is 1", lambda: make_mesh(4, "dp", backend="self")),
        (ShardingError, "run_threads", lambda: make_mesh(4, "dp", backend="threads")),
        (ShardingError, "must differ", lambda: make_mesh((1, 1), ("dp", "dp"), backend="self")),
        (ArgumentValueError, "2 sizes", lambda: make_mesh((1, 1), ("dp",), backend="self")),
        (ArgumentValueError, "positive", lambda: make_mesh((0,), ("dp",), backend="self")),
        (ArgumentValueError, "positive", lambda: make_mesh((True,), ("dp",), backend="self")),
        (ArgumentError, "shape must be a sequence of int, got None", lambda: make_mesh(None, "dp")),
        (ArgumentError, "names must be a sequence of str, got None", lambda: make_mesh(1, None)),
        (ArgumentError, "names must be strings", lambda: make_mesh(1, 3)),
        (ArgumentValueError, "backend must be one of", lambda: make_mesh(1, "dp", backend="gloo")),
        (ArgumentValueError, "comm is for", lambda: make_mesh(1, "dp", backend="self", comm=1)),
    ],
)
def test_meshes_that_cannot_be(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_a_second_mesh_of_virtual_ranks():
    def both(mesh):
        with make_mesh((2, 2), ("a", "b"), backend="threads") as other:
            received = np.zeros(2, int)
            other.communicator("b").all_gather(np.array(mesh.rank), received)
        return received.tolist()

    assert run_threads((4,), ("dp",), both) == [[0, 1], [0, 1], [2, 3], [2, 3]]


# --- ranks that do not do the same --------------------------------------------------------------------------


def reduced(c: Communicator, n: int, op: str = "sum") -> None:
    c.all_reduce(np.zeros(n), np.zeros(n), op)


def first_ends(mesh):
    if mesh.rank:
        mesh.communicator("dp").barrier()


def first_ends_before_the_background_is_done(mesh):
    if mesh.rank:
        mesh.communicator("dp").start("barrier").wait()


def other_lengths(mesh):
    reduced(mesh.communicator("dp"), 3 + mesh.rank)


def other_operations(mesh):
    reduced(mesh.communicator("dp"), 3, "max" if mesh.rank else "min")


def other_axes(mesh):
    mesh.communicator("dp" if mesh.rank % 2 else ("dp", "tp")).barrier()


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (first_ends, "rank 1 in barrier over 'dp'"),
        (first_ends_before_the_background_is_done, "so none can go on"),
        (other_lengths, r"rank 0: all_reduce sum float64\[[34]\]\n  rank 1: all_reduce sum float64\[[56]\]"),
        (other_operations, "rank 0: all_reduce min .*\n  rank 1: all_reduce max"),
        (other_axes, "so none can go on"),
    ],
)
@pytest.mark.parametrize("checks", [False, True])
def test_virtual_ranks_that_differ(program, text, checks):
    with (
        config.patch(check_collectives=checks),
        pytest.raises(CollectiveError, match=None if checks else text),
    ):
        run_threads((2, 2), ("dp", "tp"), program)


def test_the_rank_that_failed_is_shown_and_the_others_are_released():
    def fails(mesh):
        if mesh.rank == 2:
            raise KeyError("of rank 2")
        mesh.communicator("dp").barrier()

    with pytest.raises(KeyError, match="of rank 2") as caught:
        run_threads((3,), ("dp",), fails)
    assert caught.value.__notes__ == ["on virtual rank 2 of 3"]
    assert caught.traceback[-1].name == "fails"


def test_a_background_error_that_no_one_waits_for_is_raised_by_close():
    def forgets(mesh):
        mesh.communicator("dp").start("all_gather", np.zeros(2), np.zeros(2))

    with pytest.raises(CollectiveError, match="recv must have the shape") as caught:
        run_threads((2,), ("dp",), forgets)
    assert ".forgets\n" in str(caught.value)


def test_agreement_shows_the_first_call_that_differs():
    def compared(mesh):
        calls = ["psum f64[3]", "all_gather f64[2]", "psum f64[]"]
        mesh.communicator("dp").agree("\n".join(calls[: 3 - (mesh.rank == 1)]))

    with pytest.raises(CollectiveError, match=r"rank 0: call 3: psum f64\[\]\n.*\(no further call\)"):
        run_threads((3,), ("dp",), compared)


def test_patched_options_hold_on_virtual_ranks():
    with config.patch(strict=True):
        assert run_threads((2,), ("dp",), lambda mesh: config.strict) == [True, True]
