"""Typed errors. The docstring of each class is its help page: a failing program, the cause, the fix.

Every error carries the user's own line, taken from the stack where it is raised, or passed as `source` if the error
is detected later (an index out of bounds inside a kernel).
"""

from __future__ import annotations

from .arrays import *
from .base import *
from .custom import *
from .distributed import *
from .running import *
from .tracing import *

__all__ = [
    "ArgumentError",
    "ArgumentValueError",
    "ArrayTooLargeError",
    "AutocastError",
    "AxisError",
    "BackwardError",
    "BackwardStateError",
    "BranchTypeError",
    "CallbackError",
    "CapturedTracerError",
    "CarryTypeError",
    "CheckError",
    "CheckpointError",
    "CollectiveError",
    "ConcretizationTypeError",
    "ConditionTypeError",
    "ConfigError",
    "ContextAttributeError",
    "DtypeError",
    "ExportError",
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
    "HookError",
    "ImmutableArrayError",
    "IndexOutOfBoundsError",
    "InfError",
    "InplaceModificationError",
    "IntegerRangeError",
    "InvalidIndexError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxImportedError",
    "JaxRuntimeError",
    "JaxprError",
    "JaxprTypeError",
    "KeyReuseError",
    "LinAlgError",
    "MemoryDamageError",
    "MissingLibraryError",
    "MissingRuleError",
    "NaNError",
    "NoAttributeError",
    "NoJaxModuleError",
    "NoRuleError",
    "NoTracingError",
    "NonConcreteBooleanIndexError",
    "NumbaTranslationError",
    "OnceDifferentiableError",
    "PartitionError",
    "PicklingError",
    "ProfileError",
    "PytreeError",
    "RefError",
    "RewriteError",
    "SavedValuesFreedError",
    "ShapeError",
    "ShardingError",
    "SolverError",
    "StaleInstanceError",
    "StaleValueError",
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
    "UnboundAxisError",
    "UnexpectedTracerError",
    "UnknownOptionError",
    "UnsupportedDtypeError",
    "UnsupportedLibraryError",
    "VmapRuleError",
]

# One module name for users, in tracebacks and pickles, whichever file defines a class.
for _name in __all__:
    globals()[_name].__module__ = __name__


def __dir__() -> list[str]:
    return sorted(__all__)
