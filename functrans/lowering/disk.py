"""A directory of small files that many processes read and write concurrently, without trusting its contents.

A file is written under a temporary name, and renamed when it is complete. It contains its key and a checksum: a
truncated, damaged or replaced file counts as missing, and is removed. Nothing waits for the disk: a file left half
written by a crash fails its checksum.

The directory belongs to the user alone. It is opened once, and its owner and mode are checked after opening, so no one
can replace it later. On Windows it must be in the user's profile.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
from collections.abc import Iterator
from typing import Any

from ..runtime.private.python_names import blake2b
from ..runtime.records import dataclass

_MAGIC = b"functrn2"
#: Magic number, uses and their complement, checksum of the rest, length of the key. The uses are updated in place, so
#: they have a different check.
_HEAD = struct.Struct("<8sII32sI")
_USES = struct.Struct("<II")
_MOST_USES = (1 << 32) - 1
_USES_AT = 8
_SUFFIX = ".entry"
_UNFINISHED = ".tmp"
#: Unfinished files older than this, in seconds, belong to processes that were killed.
_ABANDONED = 3600
#: The most files: with more, it takes seconds to measure the directory.
MOST_FILES = 20_000
#: The fraction of the limits that remains in use after old files are removed.
_KEPT = 0.8
#: A process measures the directory again after writing this many files.
_MEASURED_EVERY = 100
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OWN = getattr(os, "O_CLOEXEC", 0)
#: Do not follow symbolic links, and do not wait for pipes.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | _OWN


class UntrustedDirectoryError(OSError):
    """The directory belongs to another user, or is writable by others."""


@dataclass(frozen=True)
class DiskEntry:
    """A file of the directory.

    Attributes
    ----------
    name : str
        The file's name.
    size : int
        In bytes.
    uses : int
        How often it has been read since it was written.
    used : float
        When it was last read or written, in seconds since the epoch.
    key : str
    data : bytes, optional
        The stored bytes; None if the file is damaged.
    """

    name: str
    size: int
    uses: int
    used: float
    key: str = ""
    data: bytes | None = None


class Disk:
    """A directory of files with keys.

    Parameters
    ----------
    path : str
        Created for the user alone, if it does not exist.

    Raises
    ------
    UntrustedDirectoryError
    OSError
        If it cannot be made or read.
    """

    def __init__(self, path: str):
        self.path = path
        self._written = 0
        self._size = self._count = 0
        self._open()

    def _open(self) -> None:
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self._by_number = {os.open, os.unlink, os.rename} <= os.supports_dir_fd
        self._number = os.open(self.path, os.O_RDONLY | _OWN) if self._by_number else -1
        try:
            self._check(os.fstat(self._number) if self._by_number else os.stat(self.path))
        except OSError:
            if self._by_number:
                os.close(self._number)
            raise

    def _check(self, status: os.stat_result) -> None:
        """Raise if the opened directory cannot be trusted."""
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(f"{self.path} is not a directory")
        if hasattr(os, "geteuid"):
            if status.st_uid != os.geteuid():
                raise UntrustedDirectoryError(f"{self.path} belongs to another user (number {status.st_uid})")
            if status.st_mode & _WRITABLE_BY_OTHERS:
                mode = stat.S_IMODE(status.st_mode)
                raise UntrustedDirectoryError(
                    f"other users may write to {self.path} (mode {mode:o}); chmod 700 would make it private"
                )
        elif not _is_below_home(self.path):
            raise UntrustedDirectoryError(
                f"{self.path} is outside of your profile, so others may write to it"
            )

    def _at(self, name: str) -> tuple[str, dict[str, Any]]:
        """A file of the opened directory, whatever its path means now."""
        return (name, {"dir_fd": self._number}) if self._by_number else (os.path.join(self.path, name), {})

    # --- reading --------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """The bytes stored under a key; None if there is no intact file."""
        name = _name_of(key)
        with contextlib.suppress(OSError):
            entry = self._read(name, use=True)
            if entry.data is not None and entry.key == key:
                return entry.data
            self.remove(name)
        return None

    def _read(self, name: str, *, use: bool = False) -> DiskEntry:
        """A file; counts as a use if it is intact and writable."""
        path, where = self._at(name)
        try:
            number = os.open(path, (os.O_RDWR if use else os.O_RDONLY) | _PLAIN, **where)
        except OSError:  # a read-only directory
            number, use = os.open(path, os.O_RDONLY | _PLAIN, **where), False
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or _foreign(status):
            os.close(number)
            return DiskEntry(name, status.st_size, 0, status.st_mtime)
        with open(number, "r+b" if use else "rb", buffering=0) as file:
            uses, key, data = _unpacked(file.readall())
            if use and data is not None:
                with contextlib.suppress(OSError):  # also marks it as most recently used
                    file.seek(_USES_AT)
                    file.write(_USES.pack(*_checked_uses(uses + 1)))
        return DiskEntry(name, status.st_size, uses, status.st_mtime, key, data)

    def entries(self) -> Iterator[DiskEntry]:
        """All files, the most recently used first; what is not a readable file has no data."""
        for name, size, used in reversed(self._files(_SUFFIX)):
            with contextlib.suppress(FileNotFoundError):
                yield self._listed(name, size, used)

    def _listed(self, name: str, size: int, used: float) -> DiskEntry:
        try:
            return self._read(name)
        except FileNotFoundError:
            raise
        except OSError:  # a symbolic link, or a file that may not be read
            return DiskEntry(name, size, 0, used)

    def _files(self, suffix: str) -> list[tuple[str, int, float]]:
        """Names, sizes and times of files, the most recently used last."""
        entries = []
        with os.scandir(self._number if self._by_number else self.path) as files:
            for file in files:
                if file.name.endswith(suffix):
                    with contextlib.suppress(OSError):  # another process may remove files too
                        status = file.stat(follow_symlinks=False)
                        entries.append((file.name, status.st_size, status.st_mtime))
        return sorted(entries, key=lambda f: f[2])

    # --- writing --------------------------------------------------------------------------------------------

    def put(self, key: str, data: bytes, limit: int) -> bool:
        """Store bytes under a key; if the total exceeds `limit` bytes, or there are too many, remove the least recently
        used files.

        Returns
        -------
        bool
            Whether they were stored: the disk may be full or read-only.
        """
        packed = _packed(key, data)
        if len(packed) > limit:
            return False
        unfinished = f"{key[:16]}-{os.getpid()}-{os.urandom(6).hex()}{_UNFINISHED}"
        try:
            try:
                self._write(unfinished, packed)
            except FileNotFoundError:  # the directory was removed
                self._open()
                self._write(unfinished, packed)
            (old, there), (new, _) = self._at(unfinished), self._at(_name_of(key))
            os.replace(
                old, new, **({"src_dir_fd": there["dir_fd"], "dst_dir_fd": there["dir_fd"]} if there else {})
            )
            self._make_room(len(packed), limit)
        except OSError:
            self.remove(unfinished)
            return False
        return True

    def _write(self, name: str, packed: bytes) -> None:
        path, where = self._at(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN
        with open(os.open(path, flags, 0o600, **where), "wb", buffering=0) as file:
            rest = memoryview(packed)
            while rest:
                rest = rest[file.write(rest) :]

    def _make_room(self, added: int, limit: int) -> None:
        """Remove the least recently used files if there are too many."""
        if self._written % _MEASURED_EVERY == 0:
            self._remove_abandoned()
            sizes = [size for _, size, _ in self._files(_SUFFIX)]
            self._size, self._count = sum(sizes), len(sizes)
        else:
            self._size += added
            self._count += 1
        self._written += 1
        if self._size <= limit and self._count <= MOST_FILES:
            return
        files = self._files(_SUFFIX)
        total, count = sum(size for _, size, _ in files), len(files)
        for name, size, _ in files:
            if total <= _KEPT * limit and count <= _KEPT * MOST_FILES:
                break
            self.remove(name)
            total -= size
            count -= 1
        self._size, self._count = total, count

    def size(self) -> int:
        """The total size of the files; removes leftovers of killed processes."""
        self._remove_abandoned()
        return sum(size for _, size, _ in self._files(_SUFFIX))

    def _remove_abandoned(self) -> None:
        """Remove what killed processes left."""
        for name, _, time_written in self._files(_UNFINISHED):
            if time.time() - time_written > _ABANDONED:
                self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        path, where = self._at(name)
        with contextlib.suppress(OSError):
            os.unlink(path, **where)

    def clear(self) -> tuple[int, int]:
        """Remove all files; returns their number and total size."""
        files = [*self._files(_SUFFIX), *self._files(_UNFINISHED)]
        for name, _, _ in files:
            self.remove(name)
        return len(files), sum(size for _, size, _ in files)


def _is_below_home(path: str) -> bool:
    """Whether a directory is in the user's profile, to which Windows admits no other user. Modes say nothing there."""
    home, place = (os.path.normcase(os.path.realpath(p)) for p in (os.path.expanduser("~"), path))
    return (
        os.path.isabs(home)
        and os.path.splitdrive(home)[0] == os.path.splitdrive(place)[0]
        and (os.path.commonpath([home, place]) == home)
    )


def _foreign(status: os.stat_result) -> bool:
    """Whether another user wrote a file, or might have."""
    return hasattr(os, "geteuid") and (
        status.st_uid != os.geteuid() or bool(status.st_mode & _WRITABLE_BY_OTHERS)
    )


def _name_of(key: str) -> str:
    return f"{key}{_SUFFIX}"


def _packed(key: str, data: bytes) -> bytes:
    n, body = len(key.encode()), key.encode() + data
    return _HEAD.pack(_MAGIC, *_checked_uses(0), _checksum(n, body), n) + body


def _checked_uses(uses: int) -> tuple[int, int]:
    """A number of uses, and its complement."""
    uses = min(uses, _MOST_USES)
    return uses, uses ^ _MOST_USES


def _unpacked(packed: bytes) -> tuple[int, str, bytes | None]:
    """The uses, key and data of a file; None if it is damaged."""
    if len(packed) < _HEAD.size:
        return 0, "", None
    magic, uses, complement, checksum, n = _HEAD.unpack_from(packed)
    body = packed[_HEAD.size :]
    if magic != _MAGIC or (uses, complement) != _checked_uses(uses) or _checksum(n, body) != checksum:
        return 0, "", None
    return uses, body[:n].decode(), body[n:]


def _checksum(n: int, body: bytes) -> bytes:
    return blake2b(body, digest_size=32, salt=n.to_bytes(4, "little")).digest()
