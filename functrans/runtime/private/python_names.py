"""What functrans uses of CPython beyond its public modules: BLAKE2 without `hashlib`.

`hashlib` loads OpenSSL, which takes 3 ms, to have other functions than this one.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ("blake2b",)
