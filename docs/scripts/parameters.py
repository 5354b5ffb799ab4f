"""Sections "Parameters" for short docstrings of functions whose families share their parameters.

`fnp.tril(m, k)` and sixty others say what they do in a sentence, and their parameters are those of all their relatives.
The table has each once, under the namespace whose functions share it, or under one function where it means something
else there. A function gets the section if all of its parameters are known here.
"""

import inspect

SHARED = {
    "functrans": {
        "x": "The value; in trees, each leaf.",
        "new_val": "The setting for the block; where the function is called outside a ``with`` statement, from now on.",
        "backend": "Accepted for JAX's sake. There is one backend, the CPU.",
        "process_index": "The rank whose devices are meant.",
        "host_id": "An older name of `process_index`.",
        "name": "The name that pictures, profiles and jaxprs show.",
        "tree": "A pytree: nested tuples, lists, dicts and registered nodes of leaves.",
        "is_leaf": "A function of a subtree; where it returns True, the subtree counts as a leaf.",
        "is_leaf_takes_path": "Whether `is_leaf` is called with the path and the subtree.",
        "f": "The function, called with the leaves (and the path in front, where the name says so).",
        "rest": "Further trees with the same structure, whose leaves are passed along.",
        "function": "A function of two arguments, the total so far and a leaf.",
        "initializer": "The first total; without it the first leaf.",
        "leaves": "The leaves, in the order in which flattening gives them.",
        "treedef": "A structure without leaves, as `functrans.tree.structure` returns it.",
        "treedefs": "Structures without leaves.",
        "typ": "A type.",
        "iterable": "Values, each of which is tested.",
        "cls": "The class. It is returned, so that the function serves as a decorator.",
        "ref": "The reference.",
        "idx": "Which elements: an index as in NumPy, or ``...`` for all.",
        "value": "The new elements; they broadcast to the selected ones.",
        "keys": "An array of keys.",
        "key": "A key.",
        "jaxpr": "The program. It stays as it is; the result is another one.",
    },
    "functrans.checkpoint_policies": {
        "_": "Ignored.", "__": "Ignored.",
        "prim": "The primitive of the equation that is asked about.",
        "args": "The abstract values of its operands.",
        "params": "Its parameters.",
        "kwargs": "Its parameters.",
        "names_not_to_save": "Names given by `functrans.checkpoint_name`, whose values are computed again.",
        "names_which_can_be_saved": "Names given by `functrans.checkpoint_name`, whose values are stored.",
        "policy_1": "A policy.", "policy_2": "Another one; what either of them stores is stored.",
    },
    "functrans.numpy": {
        "x": "The numbers.", "a": "The array.", "b": "The second operand.", "m": "The array.", "v": "The values.",
        "z": "Real or complex numbers.", "val": "Real or complex numbers.",
        "arr": "The array.", "array": "The array.", "ary": "The array.", "A": "The array.", "object": "The values.",
        "a1": "The first operand.", "a2": "The second operand.", "ar1": "The first array.", "ar2": "The second array.",
        "x1": "The first operand.", "x2": "The second operand.", "element": "Any object.",
        "arys": "The arrays.", "arrays": "The arrays.", "tup": "The arrays.", "args": "The arrays.",
        "operands": "Subscripts and arrays, as in `einsum`.",
        "axis": "The axis along which the function works, or several where NumPy allows a tuple. Negative ones count "
        "from the last.",
        "axes": "The axes, in order. Negative ones count from the last.",
        "axis1": "The first of the two axes.", "axis2": "The second of the two axes.",
        "source": "Where the axes are.", "destination": "Where they go.",
        "dtype": "The dtype of the result; by default NumPy's for these arguments.",
        "out": "Must be None: results are immutable.",
        "where": "Which elements take part; True by default, for all.",
        "initial": "What the result starts from; required where an empty reduction has no neutral element.",
        "keepdims": "Whether reduced axes stay, with extent 1.",
        "like": "Accepted for NumPy's sake, and ignored.",
        "device": "Accepted for the array API's sake: None or \"cpu\".",
        "order": "The memory layout: ``'C'``, ``'F'``, ``'A'`` or ``'K'``. It does not change any number.",
        "subok": "Accepted for NumPy's sake, and ignored.",
        "copy": "Whether to copy. None copies only where that is necessary.",
        "shape": "The shape: an int or a tuple of ints.",
        "shapes": "Shapes: tuples of ints.",
        "fill_value": "The number that fills the array; with `size=`, what stands in places that are left over.",
        "size": "The number of elements of the result. Compiled code needs it, since shapes are fixed when a function "
        "is traced; `fill_value` fills what is left over.",
        "k": "The number of the diagonal: 0 is the main one, positive ones are above it.",
        "N": "The number of rows.", "M": "The number of columns; by default that of the rows.",
        "n": "The number of rows.",
        "offset": "The number of the diagonal: 0 is the main one, positive ones are above it.",
        "indices_or_sections": "A number of equal parts, or the indices at which to cut.",
        "casting": "Which casts are allowed, as in `numpy.can_cast`.",
        "start": "The first number.", "stop": "The last number.", "step": "The distance between numbers.",
        "num": "How many numbers.", "endpoint": "Whether `stop` is the last of them.",
        "base": "The base of the powers.",
        "ddof": "What is subtracted from the number of elements to get the divisor.",
        "correction": "The array API's name for `ddof`.",
        "mean": "The mean, if it is known already.",
        "weights": "The weights of the elements.",
        "overwrite_input": "Accepted for NumPy's sake, and ignored.",
        "method": "How to interpolate between neighbours, as in `numpy.quantile`.",
        "q": "The quantiles, between 0 and 1 (percentiles: 0 and 100).",
        "kind": "Accepted for NumPy's sake: every kind gives the same order.",
        "stable": "Accepted for the array API's sake; sorting is stable.",
        "descending": "Whether the largest comes first.",
        "kth": "The position, or positions, of the elements that are to stand where sorting puts them.",
        "assume_unique": "Accepted for NumPy's sake: whether the elements are known to be distinct.",
        "values": "What is added.", "reps": "How often, along each axis.",
        "rtol": "The relative tolerance.", "atol": "The absolute tolerance.",
        "equal_nan": "Whether NaN equals NaN.",
        "preferred_element_type": "The dtype to compute in, under JAX's name.",
        "precision": "The number of digits.", "max_line_width": "The number of characters in a line.",
        "suppress_small": "Whether very small numbers are printed as zero.",
        "p": "Coefficients, the highest power first.", "seq_of_zeros": "The roots, or a square matrix.",
        "trim_leading_zeros": "Whether leading zeros are removed first.",
        "strip_zeros": "Whether leading zeros are removed first, which compiled code cannot do.",
        "include_initial": "Whether the result begins with the neutral element.",
        "promote_integers": "Whether short integers are widened first, as in NumPy.",
        "dimensions": "The shape of the grid.", "sparse": "Whether axes of extent 1 stand for whole ones.",
        "deg": "Whether the result is in degrees.", "ndim": "The number of axes.", "ndmin": "The least number of axes.",
        "mask_func": "A function such as `triu`, called with an array and `k`.",
        "prototype": "The array whose shape and dtype count.",
        "func": "The function, called with the array and one axis after the other.",
        "function": "The function, called with an array of coordinates for each axis.",
        "kwargs": "Keyword arguments for NumPy's function, or for `function`.",
        "file": "A file, or its path.", "sep": "What stands between the numbers.",
        "count": "How many numbers; -1 for all.",
        "buffer": "An object with the buffer interface.", "iter": "Something to iterate over.", "string": "The text.",
        "tol": "In units of the rounding error.", "max_work": "How hard to try, as in NumPy.",
        "bins": "How many bins, their edges, or a rule's name.", "range": "The lowest and the highest number.",
        "from_": "A dtype or an array.", "to": "A dtype.",
        "arg1": "A dtype.", "arg2": "A dtype, or a class of dtypes.", "type1": "A dtype.", "type2": "A dtype.",
        "optimize": "How to choose the order, as in `numpy.einsum_path`.",
        "einsum_call": "Whether to return what `einsum` needs.",
        "beta": "The shape of the window: 0 is a rectangle, large numbers are narrow.",
        "mode": "``'full'``, ``'same'`` or ``'valid'``: how much of the overlap.",
        "ord": "Which norm, as in `numpy.linalg.norm`.",
        "d": "The time between samples.",
    },
    "functrans.numpy.angle": {"z": "Real or complex numbers."},
    "functrans.numpy.isdtype": {"dtype": "The dtype in question.", "kind": "A dtype, the name of a kind, or a tuple."},
    "functrans.numpy.frombuffer": {"offset": "Where to start, in bytes."},
    "functrans.numpy.fromfile": {"offset": "Where to start, in bytes."},
    "functrans.numpy.rollaxis": {"start": "Before which axis it goes."},
    "functrans.numpy.polyder": {"m": "How often to differentiate."},
    "functrans.numpy.bartlett": {"M": "The number of points."},
    "functrans.numpy.blackman": {"M": "The number of points."},
    "functrans.numpy.hamming": {"M": "The number of points."},
    "functrans.numpy.hanning": {"M": "The number of points."},
    "functrans.numpy.kaiser": {"M": "The number of points."},
    "functrans.numpy.tril_indices": {"m": "The number of columns; by default that of the rows."},
    "functrans.numpy.triu_indices": {"m": "The number of columns; by default that of the rows."},
    "functrans.numpy.fft.rfftfreq": {"n": "The length of the signal."},
    "functrans.lax": {
        "x": "The operand; several have one dtype and equally many axes, or none.",
        "y": "The second operand, of the same dtype.", "a": "An operand.", "b": "An operand.", "z": "An operand.",
        "operand": "The array.", "array": "The array.", "arr": "The array.", "values": "The values that go along.",
        "operands": "The arrays, of one dtype.", "arrays": "The arrays, of one shape and dtype.", "keys": "The keys.",
        "lhs": "The left operand.", "rhs": "The right operand, of the same dtype.",
        "shape": "The shape: a tuple of ints.", "shapes": "Shapes: tuples of ints.", "sizes": "Extents.",
        "dtype": "A dtype.", "new_dtype": "The dtype of the result.", "fill_value": "The number that fills the array.",
        "dimension": "The axis.", "dimensions": "The axes.", "axis": "The axis.", "axes": "The axes that are reduced.",
        "new_sizes": "The shape of the result.", "permutation": "Which axis comes first, second, and so on.",
        "broadcast_dimensions": "To which axis of the result each axis of the operand goes.",
        "start_dimension": "The first of the axes.", "stop_dimension": "The axis after the last of them.",
        "padding_value": "The number outside.",
        "padding_config": "For each axis how many before, after and between elements; negative numbers cut.",
        "index": "The position, which may be traced.", "start_index": "The first position, which may be traced.",
        "start_indices": "The first position on each axis, which may be traced.",
        "slice_size": "How many elements.", "slice_sizes": "How many elements on each axis.",
        "limit_index": "The position after the last.", "limit_indices": "The position after the last, on each axis.",
        "stride": "The step.", "strides": "The step on each axis.",
        "keepdims": "Whether the axis stays, with extent 1.",
        "update": "What is written; it has the operand's dtype.",
        "allow_negative_indices": "Whether negative positions count from the end.",
        "index_dtype": "The dtype of the result, one of integers.",
        "precision": "Accepted for JAX's sake: products are exact to rounding.",
        "preferred_element_type": "The dtype to compute in.",
        "min": "The lower bound.", "max": "The upper bound.",
        "pred": "Booleans.", "on_true": "Taken where `pred` is true.", "on_false": "Taken where it is false.",
        "which": "The number of the case, for each element.", "cases": "Arrays of one shape and dtype.",
        "rounding_method": "What becomes of halves.", "is_stable": "Whether equal keys keep their order.",
        "window_strides": "The step of the window on each axis.",
        "padding": "``'SAME'``, ``'VALID'``, or how many before and after on each axis.",
        "lhs_dilation": "How far apart the elements of `lhs` are put.",
        "rhs_dilation": "How far apart the elements of `rhs` are put.",
        "dimension_numbers": "Which axes are the batch's, the channels' and those of space.",
        "lhs_shape": "The shape of the left operand.", "rhs_shape": "The shape of the right operand.",
        "in_shape": "The shape of the operand.", "window_shape": "The shape of the window.",
        "operand_shape": "The shape of the operand.", "window_dimensions": "The shape of the window.",
        "base_dilation": "How far apart the elements of the operand are put.",
        "window_dilation": "How far apart those of the window are.",
        "pads": "How many before and after, on each axis.", "batch_group_count": "In how many groups the batch is.",
        "axis_name": "The name of an axis of the mesh or of `vmap`, or several names.",
        "axis_index_groups": "Which ranks belong together; all of them by default.",
        "source": "The rank whose value all get.", "perm": "For each rank the one whose value it gets.",
        "rank": "The number of axes of the result.", "reps": "How often, along each axis.",
        "like_arr": "The array whose shape counts.",
    },
    "functrans.random": {"impl_spec": "The name of an implementation, such as ``'threefry2x32'``."},
    "functrans.scipy.optimize": {
        "f": "The function, of one number.", "a": "One end of the interval.", "b": "The other end; signs differ there.",
        "args": "Further arguments of `f`.", "xtol": "The absolute tolerance of the root.",
        "rtol": "The relative tolerance of the root.", "maxiter": "The greatest number of steps.",
        "full_output": "Whether to return a report, too.", "disp": "Whether not to converge is an error.",
    },
    "functrans.scipy.linalg": {
        "a": "The matrix, or a stack of matrices.", "b": "The second matrix of a generalized problem.",
        "lower": "Whether the lower triangle counts.", "overwrite_a": "Accepted for SciPy's sake, and ignored.",
        "overwrite_b": "Accepted for SciPy's sake, and ignored.", "check_finite": "Accepted for SciPy's sake.",
        "type": "Which generalized problem, 1, 2 or 3.",
        "subset_by_index": "The first and the last eigenvalue to return.",
    },
    "functrans.scipy.signal": {
        "in1": "The first array.", "in2": "The second array.", "mode": "``'full'``, ``'same'`` or ``'valid'``.",
        "boundary": "What is beyond the borders: ``'fill'``, ``'wrap'`` or ``'symm'``.",
        "fillvalue": "The number beyond the borders.", "method": "``'auto'``, ``'direct'`` or ``'fft'``.",
        "x": "The signal.", "fs": "Samples a second.", "window": "The name of a window, or its values.",
        "nperseg": "Samples in a segment.", "noverlap": "Samples that neighbours share.",
        "nfft": "The length of the transform.", "detrend": "``'constant'``, ``'linear'`` or False.",
        "return_onesided": "Whether real signals give frequencies from zero only.",
        "scaling": "``'density'`` or ``'spectrum'``.", "axis": "The axis of time.",
        "average": "``'mean'`` or ``'median'`` of the segments.",
    },
    "functrans.scipy.stats": {
        "x": "The point, or points along the first axes.", "alpha": "Concentrations, all positive.",
        "mean": "The mean.", "cov": "The covariance.", "allow_singular": "Whether it may be singular.",
        "n": "The number of trials.", "p": "The probabilities.", "a": "The numbers.", "axis": "The axis of samples.",
        "ddof": "What is subtracted from the number of elements.", "nan_policy": "``'propagate'``.",
    },
    "functrans.example_libraries.optimizers": {
        "step_size": "The length of the first step.", "decay_steps": "After how many steps the rate has acted once.",
        "decay_rate": "The factor, or the rate.", "staircase": "Whether the rate acts at once after `decay_steps`.",
        "final_step_size": "The length of the last step.", "power": "The power of the polynomial.",
        "grad_tree": "A tree of gradients.", "max_norm": "The greatest norm of all of them together.",
        "scalar_or_schedule": "A step length, or a function of the step's number.",
        "opt_state": "A state, as an optimizer's functions take and return it.",
        "marked_pytree": "A tree, as `unpack_optimizer_state` makes it.", "tree": "A tree of arrays.",
    },
    "functrans.testing": {
        "f": "The function to test.", "fun": "The function to test.",
        "x": "The point.", "args": "The arguments at which it is tested.",
        "rng": "A `numpy.random.Generator` for directions.", "wrt": "The positions of the arguments that vary.",
        "atol": "The absolute tolerance.", "rtol": "The relative tolerance.",
        "sizes": "How many lanes to try.", "backends": "The backends to compare.",
    },
}  # fmt: skip
TYPES = {
    "ArrayLike": "array_like", "Value": "array_like", "DTypeLike": "dtype_like", "Any": "", "Axis": "int or None",
    "Shape": "int or tuple of ints", "Callable": "callable", "None": "", "Param": "", "Order": "str", "Casting": "str",
}  # fmt: skip


def known(full, name):
    """What the table says of a parameter: of this function first, then of its namespace and those around it."""
    while full:
        if name in SHARED.get(full, {}):
            return SHARED[full][name]
        full = full.rpartition(".")[0]
    return None


def kind(parameter):
    """The type, and whether the argument may be left out, as numpydoc writes them."""
    annotation = str(parameter.annotation).removeprefix("typing.")
    words = [TYPES.get(a.strip(), a.strip() if a.strip().islower() else "") for a in annotation.split("|")]
    kinds = [" or ".join(w for w in words if w) if parameter.annotation is not parameter.empty else ""]
    if parameter.default is None:
        kinds.append("optional")
    elif parameter.default is not parameter.empty:
        kinds.append(
            f"default {parameter.default!r}"
            if isinstance(parameter.default, (int, float, str))
            else "optional"
        )
    return ", ".join(k for k in kinds if k)


def section(full, function):
    """The lines of a section for a function without one; none where a parameter is not known."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    lines = ["Parameters", "----------"]
    for parameter in parameters:
        stars = {parameter.VAR_POSITIONAL: "\\*", parameter.VAR_KEYWORD: "\\*\\*"}.get(parameter.kind, "")
        about = known(full, parameter.name)
        if about is None:
            return []
        of = kind(parameter) if not stars else ""
        lines += [f"{stars}{parameter.name} : {of}" if of else f"{stars}{parameter.name}", f"    {about}"]
    return [*lines, ""] if parameters else []


def added(full, function, lines):
    """Put the section in front of the first other one of a docstring, in place."""
    if not any(line.strip() == "Parameters" for line in lines) and (new := section(full, function)):
        under = [i for i, line in enumerate(lines) if i and line.strip() and not line.strip().strip("-")]
        at = under[0] - 1 if under else len(lines)
        lines[at:at] = new if under else ["", *new]
