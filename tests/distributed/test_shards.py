"""Checkpoints in shards: written by some ranks, read by others; whole at each moment; damage is named."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from functrans.distributed import make_mesh, run_threads, shards
from functrans.errors import ArgumentError, CheckpointError, CollectiveError, ShardingError

WHOLE = {
    "table": np.random.default_rng(0).normal(size=(5, 3)),
    "bias": np.arange(7, dtype=np.float32),
    "low": np.arange(4).astype(bfloat16).reshape(2, 2, 1),
    "flags": np.array([True, False, True]),
    "z": np.arange(6) * (1 + 2j),
    "no rows": np.zeros((0, 4)),
    "empty rows": np.zeros((3, 0), np.int8),
}
SAME = {"step": np.array(12), "scale": np.array([1.5, 2.5], np.float16)}
ROWS = {key: len(x) for key, x in WHOLE.items()}


def share(x, mesh, pad):
    mine = x[shards.rows(len(x), mesh.size, mesh.rank)]
    each = -(-len(x) // mesh.size)
    return (
        np.concatenate([mine, np.full((each - len(mine), *x.shape[1:]), 99).astype(x.dtype)]) if pad else mine
    )


def save_here(mesh, folder, pad=True, factor=1):
    arrays = {key: share(x, mesh, pad) for key, x in WHOLE.items()}
    arrays |= {key: (factor * x).astype(x.dtype) for key, x in SAME.items()}
    shards.save(folder, arrays, ROWS, mesh.communicator(mesh.names))


def load_here(mesh, folder):
    return shards.load(folder, mesh.communicator(mesh.names))


def equal(got, expected):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("n", "size", "expected"),
    [(5, 3, [2, 2, 1]), (8, 4, [2, 2, 2, 2]), (5, 4, [2, 2, 1, 0]), (1, 3, [1, 0, 0]), (0, 2, [0, 0])],
)
def test_rows(n, size, expected):
    """Padded chunks, as torch's FSDP has them."""
    parts = [shards.rows(n, size, rank) for rank in range(size)]
    assert [len(part) for part in parts] == expected
    assert [i for part in parts for i in part] == [*range(n)]


@pytest.mark.parametrize("writers", [1, 2, 3])
@pytest.mark.parametrize("pad", [False, True])
def test_any_number_of_ranks_reads(tmp_path, writers, pad):
    run_threads(writers, "dp", lambda mesh: save_here(mesh, tmp_path / "model", pad))
    got = shards.load(tmp_path / "model")
    for key, x in (WHOLE | SAME).items():
        equal(got[key], x)
    for readers in (1, 2, 4):
        parts = run_threads(readers, "dp", lambda mesh: load_here(mesh, str(tmp_path / "model")))
        for key, x in WHOLE.items():
            together = np.concatenate([part[key] for part in parts])
            equal(together[: len(x)], x)
            assert not together[len(x) :].any()
            assert len({part[key].shape for part in parts}) == 1
        for key, x in SAME.items():
            for part in parts:
                equal(part[key], x)


@pytest.mark.slow
def test_processes(on_ranks, tmp_path):
    done = on_ranks(3, "saves.py", tmp_path)
    assert done.returncode == 0, done.stderr
    equal(shards.load(tmp_path)["table"], np.arange(10.0).reshape(5, 2))


# --- whole at each moment -----------------------------------------------------------------------------------


def test_a_second_save_replaces_the_first(tmp_path):
    for factor, writers in ((1, 3), (2, 2), (3, 2)):
        run_threads(writers, "dp", lambda mesh: save_here(mesh, tmp_path, factor=factor))  # noqa: B023
        assert shards.load(tmp_path)["step"] == 12 * factor
        assert len([*tmp_path.glob("*.shard")]) == writers
        assert {p.suffix for p in tmp_path.iterdir()} == {".shard", ".json"}


@pytest.mark.parametrize("fails", ["a shard", "the index"])
def test_a_save_that_fails_leaves_the_checkpoint_before(tmp_path, monkeypatch, fails):
    run_threads(2, "dp", lambda mesh: save_here(mesh, tmp_path))
    before = sorted(tmp_path.iterdir())
    fsync = os.fsync

    def full(number):
        name = os.readlink(f"/proc/self/fd/{number}")
        if "index" in name if fails == "the index" else "00001-of" in name:
            raise OSError(28, "No space left on device")
        fsync(number)

    monkeypatch.setattr(os, "fsync", full)

    def save(mesh):
        with pytest.raises(CheckpointError, match="cannot be written: No space left on device"):
            save_here(mesh, tmp_path, factor=5)

    run_threads(2, "dp", save)
    assert shards.load(tmp_path)["step"] == 12
    assert sorted(p for p in tmp_path.iterdir() if p.suffix != ".tmp") == before


def test_a_save_that_was_killed_before_its_index(tmp_path):
    save_here(make_mesh(1, "dp", backend="self"), tmp_path)
    (tmp_path / "00-of.shard").write_bytes(b"half")
    assert shards.load(tmp_path)["step"] == 12
    save_here(make_mesh(1, "dp", backend="self"), tmp_path)
    assert len([*tmp_path.glob("*.shard")]) == 1


# --- damage -------------------------------------------------------------------------------------------------


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = bytearray(path.read_bytes())
    data[5] ^= 64
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, flip, empty, Path.unlink])
@pytest.mark.parametrize("name", ["index.json", "*00001-of-00002.shard"])
def test_a_damaged_file_is_named(tmp_path, damage, name):
    run_threads(2, "dp", lambda mesh: save_here(mesh, tmp_path))
    (path,) = tmp_path.glob(name)
    damage(path)
    with pytest.raises(CheckpointError) as caught:
        shards.load(tmp_path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("text", ["[]", '{"index": 3}', '{"index": "{}", "checksum": ""}', "\ufeff"])
def test_an_index_that_is_none(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"index\.json is damaged"):
        shards.load(tmp_path)


def test_an_index_of_a_later_version(tmp_path):
    text = json.dumps({"format": "functrans shards 2"})
    checksum = shards._checksum(text.encode())
    (tmp_path / "index.json").write_text(json.dumps({"checksum": checksum, "index": text}))
    with pytest.raises(CheckpointError, match="'functrans shards 2', and this version"):
        shards.load(tmp_path)


# --- bad input ----------------------------------------------------------------------------------------------


def test_rows_that_are_missing(tmp_path):
    c = make_mesh(1, "dp", backend="self").communicator("dp")
    with pytest.raises(ShardingError, match=r"'w' of 5 rows has 5 of them on rank 0 of 1, got shape \(4,\)"):
        shards.save(tmp_path, {"w": np.ones(4)}, {"w": 5}, c)


def test_ranks_that_save_different_arrays(tmp_path):
    def save(mesh):
        arrays = {"a": np.ones(2), "b": np.ones(2, "f8" if mesh.rank else "f4")}
        shards.save(tmp_path, arrays, {}, mesh.communicator("dp"))

    with pytest.raises(CollectiveError, match=r"save: b float32\[2\]\n.*save: b float64\[2\]"):
        run_threads(2, "dp", save)


def test_a_path_that_is_none():
    with pytest.raises(ArgumentError, match=r"shards\.load: path must be"):
        shards.load(3)
