"""`functrans.distributed.map`: results in order, on every rank, for any number of ranks; errors with their items."""

import runpy
from pathlib import Path

import pytest

from functrans.distributed import make_mesh, map, run_threads
from functrans.errors import ArgumentError

check = runpy.run_path(str(Path(__file__).with_name("programs") / "mapped.py"))["check"]


def test_alone():
    check(make_mesh(1, "dp", backend="self"))


@pytest.mark.parametrize("n", [2, 3])
def test_threads(n):
    run_threads(n, "dp", check)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 4])
def test_processes(on_ranks, n):
    done = on_ranks(n, "mapped.py", n)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all right") == n


def test_without_a_mesh():
    with pytest.raises(ArgumentError, match="mesh must be a Mesh"):
        map(abs, [1], 4)


def test_what_is_not_iterable():
    with (
        make_mesh((1,), ("dp",), backend="self") as mesh,
        pytest.raises(ArgumentError, match="items must be iterable"),
    ):
        map(abs, 3, mesh)


def test_the_default_bar_is_on_stderr(capsys):
    map(abs, [1, 2, 3], make_mesh(1, "dp", backend="self"), desc="three numbers")
    assert "three numbers" in capsys.readouterr().err
