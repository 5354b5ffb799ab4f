"""What functrans uses of CPython beyond its public modules.

- BLAKE2 without `hashlib`, which loads OpenSSL, for 3 ms, to have other functions than this one.
- What an import raises that would wait for a thread that waits for it.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

try:
    from _frozen_importlib import _DeadlockError as DeadlockError  # type: ignore[attr-defined]
except ImportError:

    class DeadlockError(RuntimeError):  # type: ignore[no-redef]
        """Nothing raises it."""


__all__ = ("DeadlockError", "blake2b")
