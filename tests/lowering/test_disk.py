"""The directory of the cache: nothing that happens to its files yields wrong bytes, or an error."""

import contextlib
import itertools
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functrans.lowering import disk as files
from functrans.lowering.disk import Disk, UntrustedDirectoryError

LIMIT = 1 << 20
KEY, OTHER = "a" * 20, "b" * 20
DATA = bytes(range(256)) * 4


@pytest.fixture
def disk(tmp_path):
    return Disk(str(tmp_path / "cache"))


def file_of(disk, key=KEY):
    return Path(disk.path) / f"{key}.entry"


def names(disk):
    return sorted(os.listdir(disk.path))


def test_what_was_stored_is_found_and_counted(disk):
    assert disk.get(KEY) is None
    assert disk.put(KEY, DATA, LIMIT)
    assert disk.put(OTHER, b"", LIMIT)
    assert disk.get(KEY) == DATA == Disk(disk.path).get(KEY)
    assert disk.get(OTHER) == b""
    assert {e.key: (e.data, e.uses) for e in disk.entries()} == {KEY: (DATA, 2), OTHER: (b"", 1)}
    assert disk.put(KEY, b"new", LIMIT)
    assert disk.get(KEY) == b"new"
    assert disk.clear()[0] == 2
    assert disk.get(KEY) is None
    assert names(disk) == []


def test_nobody_else_may_read_it(disk):
    disk.put(KEY, DATA, LIMIT)
    assert stat.S_IMODE(os.stat(disk.path).st_mode) == 0o700
    assert stat.S_IMODE(file_of(disk).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_directory_that_others_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(UntrustedDirectoryError, match="chmod 700"):
        Disk(str(tmp_path))


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    owner = os.stat(tmp_path).st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(UntrustedDirectoryError, match=f"another user .number {owner}."):
        Disk(str(tmp_path))


def test_a_file_of_another_user_counts_as_missing(disk, monkeypatch):
    disk.put(KEY, DATA, LIMIT)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert disk.get(KEY) is None


def test_a_directory_put_in_its_place_later_is_not_read(disk, tmp_path):
    disk.put(KEY, DATA, LIMIT)
    evil = Disk(str(tmp_path / "evil"))
    evil.put(KEY, b"evil", LIMIT)
    os.rename(disk.path, tmp_path / "moved")
    os.symlink(evil.path, disk.path)
    assert disk.get(KEY) == DATA


@settings(max_examples=120)
@given(
    st.integers(0, 60) | st.integers(0, 1200),
    st.integers(0, 255),
    st.sampled_from(["cut", "change", "insert"]),
)
def test_damage_is_noticed(tmp_path_factory, place, byte, how):
    disk = Disk(str(tmp_path_factory.mktemp("damaged")))
    disk.put(KEY, DATA, LIMIT)
    whole = file_of(disk).read_bytes()
    place %= len(whole)
    rest = {"cut": b"", "change": bytes([byte]) + whole[place + 1 :], "insert": bytes([byte]) + whole[place:]}
    file_of(disk).write_bytes(whole[:place] + rest[how])
    unchanged = how == "change" and whole[place] == byte
    assert disk.get(KEY) == (DATA if unchanged else None)
    assert file_of(disk).exists() == unchanged  # what is damaged is removed


def test_the_count_of_uses_stays_at_the_most_that_fits(disk, monkeypatch):
    monkeypatch.setattr(files, "_MOST_USES", 3)
    disk.put(KEY, DATA, LIMIT)
    assert [disk.get(KEY) == DATA for _ in range(6)] == [True] * 6
    assert next(disk.entries()).uses == 3


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_counts_as_missing(disk, mode):
    disk.put(KEY, DATA, LIMIT)
    file_of(disk).chmod(mode)
    assert disk.get(KEY) is None
    assert not file_of(disk).exists()


def test_exchanged_files_count_as_missing(disk):
    disk.put(KEY, DATA, LIMIT)
    disk.put(OTHER, b"other", LIMIT)
    os.replace(file_of(disk, OTHER), file_of(disk, KEY))
    assert disk.get(KEY) is None
    assert disk.get(OTHER) is None


def test_what_is_no_file_counts_as_missing(disk, tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"x")
    os.symlink(tmp_path / "elsewhere", file_of(disk))
    file_of(disk, OTHER).mkdir()
    os.mkfifo(file_of(disk, "c" * 20))
    for key in (KEY, OTHER, "c" * 20):
        assert disk.get(key) is None
    entries = list(disk.entries())
    assert file_of(disk).name in [e.name for e in entries]
    assert [e.data for e in entries] == [None] * len(entries)
    assert (tmp_path / "elsewhere").read_bytes() == b"x"


def test_the_files_not_used_for_longest_go_first(disk):
    keys = [f"{i:020}" for i in range(10)]
    for i, key in enumerate(keys):
        disk.put(key, bytes(1000), 1 << 30)
        os.utime(file_of(disk, key), (i, i))
    assert disk.get(keys[0]) == bytes(1000)  # now the one used last
    assert disk.put("x" * 20, bytes(1000), 8000)
    kept = {e.key for e in disk.entries()}
    assert {keys[0], "x" * 20} <= kept
    assert not {keys[1], keys[2], keys[3]} & kept
    assert disk.size() <= 8000
    assert not disk.put("y" * 20, bytes(9000), 8000), "larger than the whole cache"
    assert kept == {e.key for e in disk.entries()}


def test_the_limit_holds_while_one_process_writes(disk):
    for i in range(3 * files._MEASURED_EVERY):
        disk.put(f"{i:020}", bytes(500), 20_000)
    assert 0 < disk.size() <= 20_000


def test_there_are_not_too_many_files(disk, monkeypatch):
    monkeypatch.setattr(files, "MOST_FILES", 40)
    for i in range(3 * files._MEASURED_EVERY):
        key = f"{i:020}"
        disk.put(key, b"data", LIMIT)
        os.utime(file_of(disk, key), (i, i))
    kept = {e.key for e in disk.entries()}
    assert 30 <= len(kept) <= 40
    assert kept == {
        f"{i:020}" for i in range(3 * files._MEASURED_EVERY - len(kept), 3 * files._MEASURED_EVERY)
    }


def test_a_removed_directory_is_made_again(disk):
    disk.put(KEY, DATA, LIMIT)
    disk.clear()
    os.rmdir(disk.path)
    assert disk.get(KEY) is None
    assert disk.put(KEY, DATA, LIMIT)
    assert Disk(disk.path).get(KEY) == DATA


def test_a_full_disk_stores_nothing_and_leaves_nothing(disk):
    """The kernel refuses bytes beyond a limit, in the middle of a file."""
    code = f"""
import resource
from functrans.lowering.disk import Disk
disk = Disk({disk.path!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
assert not disk.put("{KEY}", bytes(50_000), 1 << 30)
assert disk.get("{KEY}") is None
assert disk.put("{OTHER}", bytes(50), 1 << 30)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert names(disk) == [f"{OTHER}.entry"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_to_read_only(disk):
    disk.put(KEY, DATA, LIMIT)
    file_of(disk).chmod(0o400)
    os.chmod(disk.path, 0o500)
    assert Disk(disk.path).get(KEY) == DATA
    assert not disk.put(OTHER, DATA, LIMIT)
    os.chmod(disk.path, 0o700)


def test_what_cannot_be_named_is_not_stored(disk, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "replace", refused)
    assert disk.put(KEY, DATA, LIMIT) is False
    assert names(disk) == []


def test_what_killed_processes_left_is_removed_later(disk):
    for age, name in ((10, "young.tmp"), (2 * files._ABANDONED, "old.tmp")):
        (Path(disk.path) / name).write_bytes(b"half")
        os.utime(Path(disk.path) / name, (time.time() - age,) * 2)
    disk.put(KEY, DATA, LIMIT)
    assert names(disk) == [f"{KEY}.entry", "young.tmp"]


def data_of(i):
    return bytes([i % 256]) * (5000 + 3000 * (i % 5))


def write_and_read(path, seed, rounds):
    disk = Disk(path)
    for n in range(rounds):
        i = (seed * 7 + n * 3) % 20
        found = disk.get(f"{i:020}")
        if found is not None and found != data_of(i):
            os._exit(1)
        disk.put(f"{i:020}", data_of(i), 150_000)


@pytest.mark.parametrize(
    ("count", "rounds"), [(16, 15), pytest.param(200, 40, marks=pytest.mark.slow)], ids=["16", "200"]
)
def test_many_writers_of_which_every_third_is_killed(tmp_path, count, rounds):
    path = str(tmp_path / "cache")
    children = []
    for seed in range(count):
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                write_and_read(path, seed, rounds)
                os._exit(0)
            os._exit(2)
        children.append(child)
        if seed % 3 == 2:
            os.kill(children[-2], signal.SIGKILL)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert set(statuses) <= {0, -signal.SIGKILL}
    assert statuses.count(0) >= count // 2
    disk = Disk(path)
    found = {i: disk.get(f"{i:020}") for i in range(20)}
    assert any(found.values())
    assert all(data in (None, data_of(i)) for i, data in found.items())
    assert disk.size() <= 150_000 + 20 * 17_000  # the limit, and what others added since it was last measured


def test_every_byte_of_a_file_counts(disk):
    """Whatever one byte becomes, the file is missing, or what was stored is found."""
    data = DATA[:40]
    disk.put(KEY, data, LIMIT)
    whole = file_of(disk).read_bytes()
    for place, change in itertools.product(range(len(whole)), (1, 0x80, 0xFF)):
        changed = whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]
        file_of(disk).write_bytes(changed)
        assert disk.get(KEY) is None
        assert not file_of(disk).exists()
    for end in range(len(whole)):
        file_of(disk).write_bytes(whole[:end])
        assert disk.get(KEY) is None
    file_of(disk).write_bytes(whole + b"x")
    assert disk.get(KEY) is None


def test_a_directory_behind_a_link_is_judged_by_itself(tmp_path):
    real = tmp_path / "real"
    real.mkdir(0o777)
    real.chmod(0o777)
    os.symlink(real, tmp_path / "link")
    with pytest.raises(UntrustedDirectoryError):
        Disk(str(tmp_path / "link"))
    real.chmod(0o700)
    disk = Disk(str(tmp_path / "link"))
    assert disk.put(KEY, DATA, LIMIT)
    assert disk.get(KEY) == DATA


@pytest.mark.parametrize(
    "test",
    [
        test_what_was_stored_is_found_and_counted,
        test_nobody_else_may_read_it,
        test_exchanged_files_count_as_missing,
        test_the_files_not_used_for_longest_go_first,
        test_the_limit_holds_while_one_process_writes,
        test_a_removed_directory_is_made_again,
    ],
    ids=lambda test: test.__name__,
)
def test_systems_that_know_directories_by_path_alone(test, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.chdir(tmp_path)
    test(Disk(str(tmp_path / "cache")))
    assert os.listdir(tmp_path) == ["cache"]
