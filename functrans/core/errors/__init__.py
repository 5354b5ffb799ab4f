"""Typed errors. The docstring of each class is its help page: a failing program, the cause, the fix.

Every error carries the user's own line, taken from the stack where it is raised, or passed as `source` if the error
is detected later (an index out of bounds inside a kernel).
"""

from __future__ import annotations

from .arrays import (
    ArgumentError,
    ArgumentValueError,
    ArrayTooLargeError,
    AxisError,
    DtypeError,
    ImmutableArrayError,
    IndexOutOfBoundsError,
    IntegerRangeError,
    InvalidIndexError,
    PytreeError,
    ShapeError,
    UnsupportedDtypeError,
)
from .base import FunctransError
from .custom import (
    CapturedTracerError,
    ContextAttributeError,
    FunctionContractError,
    FunctionDefinitionError,
    FunctionError,
    MissingRuleError,
    OnceDifferentiableError,
    SavedValuesFreedError,
)
from .derivatives import GradientError, NoRuleError
from .host import CallbackError, FormatError
from .kernels import MemoryDamageError
from .loops import BranchTypeError, CarryTypeError, ConditionTypeError, TapeLimitError
from .numerics import LinAlgError, NaNError, SolverError
from .options import ConfigError, NoAttributeError, UnknownOptionError
from .returned import (
    BackwardError,
    GradientCountError,
    GradientDtypeError,
    GradientShapeError,
    GradientStructureError,
    TangentCountError,
    TangentDtypeError,
    TangentError,
    TangentShapeError,
    VmapRuleError,
)
from .tracing import (
    ConcretizationError,
    JaxprError,
    NonConcreteBooleanIndexError,
    PicklingError,
    StaleInstanceError,
    StaticArgumentError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TracerScalarConversionError,
    UnexpectedTracerError,
)

__all__ = [
    "ArgumentError",
    "ArgumentValueError",
    "ArrayTooLargeError",
    "AxisError",
    "BackwardError",
    "BranchTypeError",
    "CallbackError",
    "CapturedTracerError",
    "CarryTypeError",
    "ConcretizationError",
    "ConditionTypeError",
    "ConfigError",
    "ContextAttributeError",
    "DtypeError",
    "FormatError",
    "FunctionContractError",
    "FunctionDefinitionError",
    "FunctionError",
    "FunctransError",
    "GradientCountError",
    "GradientDtypeError",
    "GradientError",
    "GradientShapeError",
    "GradientStructureError",
    "ImmutableArrayError",
    "IndexOutOfBoundsError",
    "IntegerRangeError",
    "InvalidIndexError",
    "JaxprError",
    "LinAlgError",
    "MemoryDamageError",
    "MissingRuleError",
    "NaNError",
    "NoAttributeError",
    "NoRuleError",
    "NonConcreteBooleanIndexError",
    "OnceDifferentiableError",
    "PicklingError",
    "PytreeError",
    "SavedValuesFreedError",
    "ShapeError",
    "SolverError",
    "StaleInstanceError",
    "StaticArgumentError",
    "TangentCountError",
    "TangentDtypeError",
    "TangentError",
    "TangentShapeError",
    "TapeLimitError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TracerScalarConversionError",
    "UnexpectedTracerError",
    "UnknownOptionError",
    "UnsupportedDtypeError",
    "VmapRuleError",
]

# One module name for users, in tracebacks and pickles, whichever file defines a class.
for _name in __all__:
    globals()[_name].__module__ = __name__
