"""NumPy's warnings of division by zero and the like, at the user's line.

NumPy names the line that calls it, which is one of functrans. Python also shows a warning once per line, so that the
first one of a process would hide all others. A filter in front of the user's makes an error of each such warning in the
files where functrans computes. The operation then runs once more, and what NumPy said is said at the user's line, where
the user's filters apply. An operation without a warning pays nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

from ..errors.source import is_own, warn_user
from .context import run_quietly

#: The kinds of `numpy.errstate`, by the words of the warnings.
_KINDS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
_MESSAGE = f"({'|'.join(_KINDS)}) encountered in "
#: Modules whose calls of NumPy all come from `EvalTrace.process` and `cast`, which catch the errors.
_MODULES = (
    r"functrans\.(core\.trace$|arrays\.casts$|primitives\.(elementwise|fft|indexing|linalg|products|random|reductions|sorting|special"
    r"|structure|tape|windows)\b)"
)


def _filter() -> Any:
    """Put the filter in front, and return it."""
    warnings.filterwarnings("error", _MESSAGE, RuntimeWarning, _MODULES)
    return warnings.filters[0]


_ours = _filter()


def watch_warnings() -> None:
    """Put the filter in front again, if the user has added others."""
    global _ours
    filters = warnings.filters
    if not filters or filters[0] is not _ours:
        _ours = _filter()


def at_users_line(
    warning: RuntimeWarning, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]
) -> Any:
    """``f(*args, **params)`` once more after `warning`, which is issued at the user's line, as others that follow."""
    off: dict[str, str] = {}
    while True:
        kind = next((kind for words, kind in _KINDS.items() if str(warning).startswith(words)), None)
        if kind is None or kind in off or not _by_filter(warning):
            raise warning
        try:
            warn_user(str(warning), RuntimeWarning)
        except RuntimeWarning as error:  # the user's filters make errors of warnings
            raise error from None
        off[kind] = "ignore"
        try:
            return run_quietly(partial(f, *args, **params), **off)
        except RuntimeWarning as another:
            warning = another


def _by_filter(warning: RuntimeWarning) -> bool:
    """Whether the filter above has made an error of a warning, not one of the user."""
    trace = warning.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code: CodeType | None = None if trace is None else trace.tb_frame.f_code
    return code is not None and is_own(code) and code is not warn_user.__code__
