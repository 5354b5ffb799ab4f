"""Write the table of docs/autocast.md from the calls of tests/coverage; with --check, only check it."""

import sys
import warnings
from pathlib import Path

import numpy as np

import functrans as ft
from functrans.arrays.autocast_rules import Autocast

PAGE = Path(__file__).parents[1] / "autocast.md"
sys.path.insert(0, str(PAGE.parents[1] / "tests" / "coverage"))

import coverage_table as table  # noqa: E402

F32, F64 = np.dtype("float32"), np.dtype("float64")
BEGIN, END = (
    "<!-- the table: docs/scripts/generate_autocast.py writes it -->\n",
    "<!-- end of the table -->\n",
)
#: Their first calls have constants of float64, which they do not mix with float32.
OF_ONE_DTYPE = ("lax.bitcast_convert_type", "lax.linalg.cholesky_update", "lax.zeta")


def operands(entry, dtype):
    """The drawn arguments of the first call with real numbers in `dtype`; None if none are real."""
    values = entry.calls[0].values(entry.seed())
    if not any(v.dtype.kind == "f" for v in values):
        return None
    return [ft.numpy.asarray(v.astype(dtype) if v.dtype.kind == "f" else v) for v in values]


def results(entry, dtype):
    """The dtypes of the results of the first call, in one string: ``float64``, ``float64, int64``."""
    values = operands(entry, dtype)
    if values is None:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ", ".join(x.dtype.name for x in table.arrays(entry.calls[0](entry.subject, values)))


def under_autocast(entry, on=True):
    """The results of float64 and of float32 arguments under ``autocast("float32")``."""
    with ft.autocast("float32", enabled=on):
        return results(entry, F64), "" if entry.id in OF_ONE_DTYPE else results(entry, F32)


def policy(entry):
    """What the rules say of a function; "calls" if it calls functions of the user's, which run under autocast."""
    call = entry.calls[0]
    if entry.through is not None or any(
        callable(x) and not isinstance(x, type) for x in leaves((call.args, call.kwargs))
    ):
        return "calls"
    if entry.namespace.startswith("functrans.scipy.stats."):
        return "none"
    values = operands(entry, F64) or ()
    return Autocast(F32).policy(getattr(entry.function, "__name__", entry.name), [v.ndim for v in values])


def leaves(x):
    """What containers hold."""
    for part in (x.values() if isinstance(x, dict) else x) if isinstance(x, (tuple, list, dict)) else ():
        yield from leaves(part)
    if not isinstance(x, (tuple, list, dict)):
        yield x


def rows():
    """A row for all functions of a namespace that have one policy and equal results."""
    found = {}
    for name, entry in table.load().items():
        if name.startswith("random.") or operands(entry, F64) is None:
            continue
        wide, narrow = under_autocast(entry)
        if wide:
            namespace = entry.namespace.removeprefix("functrans.")
            found.setdefault((namespace, policy(entry), wide, narrow), []).append(entry.name)
    order = ("low", "wide", "promote", "none", "calls")
    return sorted(found.items(), key=lambda row: (row[0][0], order.index(row[0][1]), row[0][2:]))


def written():
    """The table."""
    lines = ["| namespace | policy | of float64 | of float32 | functions |\n", "|---|---|---|---|---|\n"]
    for (namespace, how, wide, narrow), names in rows():
        functions = " ".join(f"`{name}`" for name in sorted(names))
        lines.append(f"| {namespace} | {how} | {wide} | {narrow} | {functions} |\n")
    return "".join(lines)


def main():
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    page = f"{head}{BEGIN}\n{written()}\n{END}{rest.partition(END)[2]}"
    if "--check" in sys.argv:
        sys.exit(page != text)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
