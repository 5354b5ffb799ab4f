"""Inspect the kernels and programs on disk: ``python -m functrans.cache list``, ``verify`` or ``clear``.

``docs/caching.md`` explains what is stored where.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from .lowering.disk import Disk, DiskEntry
from .lowering.llvm.store import default_directory, unpacked
from .runtime.config import config

__all__ = ("main",)

_UNITS = ("bytes", "kB", "MB", "GB")
_AGES = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command-line arguments.

    Returns
    -------
    int
        The exit code: 1 if `verify` found damaged files, 2 if no cache exists.
    """
    parser = argparse.ArgumentParser(
        prog="python -m functrans.cache",
        description="The kernels and programs that functrans keeps on disk.",
    )
    parser.add_argument("command", choices=_COMMANDS, nargs="?", default="list", help="what to do (list)")
    parser.add_argument(
        "--dir", default=config.cache_dir or default_directory(), help="the directory (%(default)s)"
    )
    options = parser.parse_args(arguments)
    if not options.dir:
        print("no cache of kernels: you have no home directory; set FUNCTRANS_CACHE_DIR", file=sys.stderr)
        return 2
    try:
        disk = Disk(os.path.abspath(os.path.expanduser(options.dir)))
    except OSError as error:
        print(f"no cache of kernels: {error}", file=sys.stderr)
        return 2
    return _COMMANDS[options.command](disk)


def _list(disk: Disk) -> int:
    """Print a line for each kernel and each program, the most recently used first, and the total size."""
    entries = list(disk.entries())
    rows = [(str(e.uses), _bytes(e.size), _age(e.used), _what(e), e.key[:12]) for e in entries]
    if rows:
        _print([("hits", "size", "used", "kernel of", "key"), *rows])
    total, hits = sum(e.size for e in entries), sum(e.uses for e in entries)
    state = "" if config.cache else "; config.cache is off"
    print(
        f"{disk.path}: {len(entries)} files, {_bytes(total)} of at most {_bytes(config.cache_limit)}, "
        f"{hits} hits{state}"
    )
    return 0


def _verify(disk: Disk) -> int:
    """Check every file, and list the damaged ones."""
    entries = list(disk.entries())
    damaged = [e.name for e in entries if _what(e) == _DAMAGED or f"{e.key}.entry" != e.name]
    for name in damaged:
        print(f"damaged: {name}")
    print(f"{disk.path}: {len(entries) - len(damaged)} files are whole, {len(damaged)} damaged")
    if damaged:
        print("Damaged files are never used. They are replaced when their kernel is compiled again.")
    return 1 if damaged else 0


def _clear(disk: Disk) -> int:
    """Remove every file."""
    count, size = disk.clear()
    print(f"{disk.path}: removed {count} files, {_bytes(size)}")
    return 0


_COMMANDS = {"list": _list, "verify": _verify, "clear": _clear}
_DAMAGED = "(damaged)"


def _what(entry: DiskEntry) -> str:
    """The name of the function to which a kernel belongs."""
    try:
        return _DAMAGED if entry.data is None else unpacked(entry.data)[1]
    except ValueError:
        return _DAMAGED


def _print(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(
                cell.ljust(w) if k > 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths))
            ).rstrip()
        )


def _bytes(n: float) -> str:
    unit = 0
    while n >= 1000 and unit < len(_UNITS) - 1:
        n, unit = n / 1000, unit + 1
    return f"{n:.0f} {_UNITS[unit]}" if unit == 0 else f"{n:.1f} {_UNITS[unit]}"


def _age(then: float) -> str:
    seconds = max(time.time() - then, 0)
    length, name = next((a for a in _AGES if seconds >= 2 * a[0]), _AGES[-1])
    return f"{seconds // length:.0f} {name} ago"


if __name__ == "__main__":
    sys.exit(main())
