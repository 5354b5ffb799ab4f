"""How many cores this process may use."""

from __future__ import annotations

import os
from contextlib import suppress

#: Where Linux tells how much processor time a container gets: quota and period, in one file or in two.
_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


def usable_cores() -> int:
    """The cores that the process may run on, no more than its container pays for or ``OMP_NUM_THREADS`` allows.

    Process pools set that variable in their workers, so that these do not all use all cores.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    limits = [cores, *_quota()]
    with suppress(ValueError):
        limits.append(int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0]))
    return max(min(limits), 1)


def _quota() -> list[int]:
    """The cores that the container's quota amounts to, rounded up; empty without a quota."""
    for paths in _QUOTAS:
        with suppress(OSError, ValueError):
            words: list[str] = []
            for path in paths:
                with open(path, encoding="ascii") as file:
                    words += file.read().split()
            quota, period = map(int, words)  # "max" means no quota
            return [-(-quota // period)] if quota > 0 and period > 0 else []
    return []
