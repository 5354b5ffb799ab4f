"""The LLVM texts that `generate` has made of C sources."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping


def text_of(name: str, numbers: Mapping[str, int]) -> str:
    """A text, in which the numbers that its source only declares are defined.

    Parameters
    ----------
    name : str
        The name of the file.
    numbers : mapping of str to int
        By name; the source declares ``extern const int64_t x NAMED("name")``.
    """
    data = pkgutil.get_data(__name__, name)
    assert data is not None  # a loader without files raises
    return re.sub(
        r"@functrans\.(\w+) = external constant (i\d+)",
        lambda m: f"@functrans.{m[1]} = internal constant {m[2]} {numbers[m[1]]}",
        data.decode(),
    )
