"""Which operations `functrans.autocast` runs in which precision, and the states that blocks of it set.

An operation is named as its public function; functions of equal names (``numpy.exp``, ``lax.exp``) are one operation.
To say what becomes of a new function, write its name into one of the lists; one in no list takes what it gets.

The lists stand here rather than in the records of primitives, because an entry is a public function: most are several
primitives (``softmax``, ``lstsq``), whose casts belong in front of the first, and some primitives serve functions of
different policies (a sum is that of ``sum``, and that inside ``dot``). A policy is also a decision about all functions,
which one makes by looking at them side by side.
"""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.dtypes import FLOAT32, FLOAT64, canonical, is_float, promote
from ..core.values import DTypeLike
from ..errors import ArgumentError, ArgumentValueError, UnsupportedDtypeError
from ..runtime.module_getattr import slots
from ..runtime.records import NamedTuple, dataclass

#: What becomes of an operation's real floating-point operands.
POLICIES = ("low", "wide", "promote", "none")

_LOW = """
    matmul matvec vecmat dot inner tensordot einsum multi_dot batch_matmul dot_general ragged_dot
    ragged_dot_general
    conv conv_general_dilated conv_general_dilated_local conv_transpose conv_with_general_padding
    convolve convolve2d correlate correlate2d fftconvolve
    dot_product_attention
"""
_WIDE = """
    exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 power float_power integer_pow rsqrt reciprocal
    tan sinh cosh arcsin arccos erfinv softplus
    sum prod nansum nanprod cumsum cumprod cumulative_sum cumulative_prod nancumsum nancumprod cumlogsumexp
    mean nanmean average var nanvar std nanstd
    logsumexp logmeanexp softmax log_softmax standardize
    norm matrix_norm vector_norm
    cholesky cholesky_update cho_factor cho_solve cond det eig eigh eigvals eigvalsh eigh_tridiagonal
    eigvalsh_tridiagonal expm expm_frechet hessenberg householder_product inv lstsq lu lu_factor lu_solve
    matrix_power matrix_rank ormqr pinv polar qdwh qr qr_multiply rsf2csf schur slogdet solve solve_sylvester
    solve_triangular sqrtm svd svdvals
    symmetric_product tensorinv tensorsolve triangular_solve tridiagonal tridiagonal_solve
    fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn
    dct dctn dst dstn idct idctn idst idstn
"""
_PROMOTE = """
    concatenate stack vstack hstack dstack column_stack append block where select select_n arctan2 cross vdot
    vecdot
    scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max put put_along_axis place putmask
"""
#: The policy of each operation that has one.
RULES: dict[str, str] = {
    name: policy
    for policy, names in (("low", _LOW), ("wide", _WIDE), ("promote", _PROMOTE))
    for name in names.split()
}
#: Products that promote where both operands are vectors.
OF_VECTORS = frozenset(("dot", "inner"))
#: Other names of operations: those of `functrans.lax`, and NumPy's second ones.
ALIASES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "abs": "absolute", "concat": "concatenate", "conj": "conjugate", "div": "divide",
    "erf_inv": "erfinv", "mod": "remainder", "mul": "multiply", "neg": "negative", "pow": "power",
    "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod", "reduce_sum": "sum", "rem": "remainder",
    "row_stack": "vstack", "sub": "subtract", "true_divide": "divide",
}  # fmt: skip


@dataclass(frozen=True)
class Autocast:
    """What a block of `functrans.autocast` sets: the target, and what differs from `RULES`. Part of the trace key."""

    dtype: np.dtype
    rules: tuple[tuple[str, str], ...] = ()

    def policy(self, name: str, ranks: Iterable[int] = ()) -> str:
        """The policy of an operation, by the name of its function; `ranks` are those of its operands."""
        return _policy(self, ALIASES.get(name, name), name in OF_VECTORS and max(ranks, default=2) < 2)

    def targets(self, policy: str, keys: tuple[Any, ...]) -> tuple[np.dtype | None, ...]:
        """The dtype to cast each operand to, by the promotion keys of all; None for those that stay as they are."""
        return _targets(self.dtype, policy, keys)


@lru_cache(maxsize=4096)
def _policy(state: Autocast, name: str, of_vectors: bool) -> str:
    own = dict(state.rules).get(name)
    if own is not None:
        return own
    return "promote" if of_vectors else RULES.get(name, "none")


@lru_cache(maxsize=4096)
def _targets(low: np.dtype, policy: str, keys: tuple[Any, ...]) -> tuple[np.dtype | None, ...]:
    floats = [k for k in keys if is_real_float(k)]
    if policy == "low":
        return tuple([low if is_real_float(k) and k.itemsize > low.itemsize else None for k in keys])
    if policy == "none" or not floats:
        return (None,) * len(keys)
    to = FLOAT64 if policy == "wide" else promote([(k, False) for k in floats])[0]
    return tuple([to if is_real_float(k) and k != to else None for k in keys])


def is_real_float(key: Any) -> bool:
    """Whether a promotion key is a real floating-point dtype, not that of a Python number."""
    return isinstance(key, np.dtype) and is_float(key)


# --- blocks -------------------------------------------------------------------------------------------------


class CastCache:
    """Casts of arrays and traced values that are still in use, by the identity of what was cast."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Any], tuple[weakref.ref[Any], Any]] = {}

    def get(self, x: Any, dtype: DTypeLike) -> Any:
        """What `x` was cast to; None if it was not."""
        entry = self._entries.get((id(x), dtype))
        return None if entry is None or entry[0]() is not x else entry[1]

    def put(self, x: Any, dtype: DTypeLike, value: Any) -> None:
        """Keep a cast for as long as `x` lives."""
        key, entries = (id(x), dtype), self._entries
        entries[key] = weakref.ref(x, lambda _: entries.pop(key, None)), value


class AutocastScope:
    """What a block sets, whether or not autocast is on in it.

    Attributes
    ----------
    dtype : numpy.dtype
    rules : dict
        Those of the block and the blocks around it.
    casts : CastCache or None
        That of the outermost block; None where casts are not cached.
    shared : CastCache
        The same, whether or not this block uses it.
    """

    __slots__ = ("casts", "dtype", "rules", "shared")

    def __init__(
        self,
        dtype: np.dtype,
        rules: Iterable[tuple[str, str]],
        cached: bool = True,
        outer: AutocastScope | None = None,
    ):
        self.dtype = dtype
        self.rules: dict[str, str] = dict(rules) if outer is None else {**outer.rules, **dict(rules)}
        self.shared: CastCache = CastCache() if outer is None else outer.shared
        self.casts = self.shared if cached else None

    def state(self) -> Autocast:
        """The state where autocast is on."""
        return Autocast(self.dtype, tuple(sorted(self.rules.items())))


# --- what users write ---------------------------------------------------------------------------------------


class BlockSettings(NamedTuple):
    """The arguments of `autocast`, checked."""

    dtype: np.dtype = FLOAT32
    enabled: bool = True
    cache_casts: bool = True
    rules: tuple[tuple[str, str], ...] = ()

    def keywords(self) -> dict[str, Any]:
        """As the user writes them."""
        return {**self._asdict(), "dtype": self.dtype.name, "rules": dict(self.rules)}


def block_of(keywords: Mapping[str, Any]) -> BlockSettings:
    """Keyword arguments of `autocast`, checked.

    Raises
    ------
    ArgumentError, ArgumentValueError
        If there is no such keyword, or a value is invalid.
    """
    checks: dict[str, Callable[[Any], Any]] = {"dtype": target, "rules": checked_rules}
    values: dict[str, Any] = {}
    for name, value in keywords.items():
        if name not in BlockSettings._fields:
            near = difflib.get_close_matches(str(name), BlockSettings._fields, n=1, cutoff=0.0)
            raise ArgumentError(f"autocast has no keyword argument {name!r}; did you mean {near[0]!r}?")
        if name not in checks and type(value) is not bool:
            raise ArgumentError(f"autocast: {name} must be True or False, got {value!r}")
        values[name] = checks[name](value) if name in checks else value
    return BlockSettings(**values)


def state_after(blocks: Iterable[BlockSettings]) -> Autocast | None:
    """The state in the innermost of nested blocks that none is around."""
    rules: dict[str, str] = {}
    state = None
    for block in blocks:
        rules.update(block.rules)
        state = Autocast(block.dtype, tuple(sorted(rules.items()))) if block.enabled else None
    return state


def target(dtype: DTypeLike, what: str = "autocast: dtype") -> np.dtype:
    """The dtype to cast to; `what` is the name of the argument, for messages.

    Raises
    ------
    ArgumentValueError
        If it is no real floating-point dtype.
    MissingLibraryError
        If it is bfloat16 and ml_dtypes is not installed.
    """
    legal = "use 'float32', 'float16' or 'bfloat16'"
    if dtype is None:  # which NumPy takes for float64
        raise ArgumentValueError(f"{what} must be a floating-point dtype, got None; {legal}")
    try:
        to = canonical(dtype, what)
    except UnsupportedDtypeError as error:
        raise ArgumentValueError(f"{error.message.split('; use one of')[0]}; {legal}") from None
    if not is_real_float(to):
        raise ArgumentValueError(f"{what} must be a floating-point dtype, got {to}; {legal}")
    return to


def operation_named(name: Any) -> str:
    """The name under which an operation has its policy.

    Raises
    ------
    ArgumentValueError
        If there is no such operation; the message names the nearest.
    """
    own = ALIASES.get(name, name)
    if own not in RULES:
        own = slots.operations.own_name(name) if isinstance(name, str) else None
    if own is None:
        known = {*RULES, *ALIASES, *slots.operations.names()}
        (near,) = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)
        raise ArgumentValueError(
            f"autocast: rules: functrans has no operation {name!r}; did you mean {near!r}?"
        )
    return ALIASES.get(own, own)


def checked_rules(rules: Any) -> tuple[tuple[str, str], ...]:
    """The rules of a block, in order of their names.

    Raises
    ------
    ArgumentError
        If it is no mapping.
    ArgumentValueError
        If there is no such operation, or no such policy.
    """
    if rules is None:
        return ()
    if not isinstance(rules, Mapping):
        raise ArgumentError(
            f"autocast: rules must be a dict from names of operations to policies, such as {{'exp': 'none'}}, got "
            f"{rules!r}"
        )
    for name, policy in rules.items():
        if policy not in POLICIES:
            raise ArgumentValueError(
                f"autocast: rules[{name!r}] must be one of {', '.join(map(repr, POLICIES))}, got {policy!r}"
            )
    return tuple(sorted({operation_named(name): policy for name, policy in rules.items()}.items()))
