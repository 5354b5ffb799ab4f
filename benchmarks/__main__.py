"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
import importlib
import sys

from .environment import describe, pin, require
from .record import record

COMMANDS = {
    "import": "import and first compile in a new process",
    "compile": "cold compile time of small programs",
    "cache": "first calls in a second process, with the cache on disk",
    "run": "compiled value and gradient of typical workloads",
    "loops": "loops inside compiled functions, forward and gradient; those that write arrays",
    "growth": "what a step costs by the number of steps",
    "sizes": "tracing, lowering, compiling, a call and memory, by the size of the program",
    "memory": "the peak memory of the programs of run and research, beside what their arrays need",
    "functions": "functions of the library one by one, beside JAX",
    "rows": "tall data, beside JAX, NumPy, loops over rows by hand, and reading the rows once",
    "research": "programs that a researcher writes, warm and cold",
    "custom_rules": "what a custom derivative rule costs, compiled and not",
    "hooks": "hooks on cotangents in a backward pass, and an update in place of donated arrays",
    "low_precision": "float16 and bfloat16 beside float32: kernels, a network and its residuals",
    "passes": "what each optimisation is worth: time and compile time without it",
    "partition": "what reverse mode keeps and how long it takes, by partitioner",
    "profile": "what an open profile costs, and whether it agrees with timers by hand",
    "autocast": "time and memory under autocast, beside float64 and the model written in float32",
    "eager": "cost of an operation under eager grad",
    "dispatch": "cost of calling a compiled function",
    "numba": "compiled gradients called in njit code, and gradients of njit code, beside the same by hand",
    "random": "drawing random numbers, beside JAX and NumPy's generator",
    "threads": "programs on one thread and on all cores, beside Numba's prange and JAX",
    "distributed": "collectives on two processes, beside mpi4py's own",
    "batch": "further batch sizes: traces and compiles",
    "taylor": "derivatives of high order by Taylor mode",
    "testing": "tests of derivatives, beside JAX's check_grads, and of many points of one function",
    "libraries": "libraries of JAX's, unmodified, on functrans and on JAX",
    "suites": "the own tests of JAX's libraries, on functrans and on JAX",
    "record": "run others, and append their tables to the history",
}

#: The modules of commands that are not those of their names in `commands`.
_MODULES = {"import": "commands.start_up", "libraries": "libraries", "suites": "libraries.suites"}


def main() -> int:
    """Parse the command line, pin the process, usually to one core, run one benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="functrans beside JAX, Numba and autograd"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name == "record":
            command.add_argument(
                "commands", nargs="*", default=["run"], metavar="command", help="default: run"
            )
        command.add_argument("--repeats", type=int, help="samples of each measurement (default: its own)")
        if name in (
            "compile",
            "run",
            "loops",
            "passes",
            "research",
            "functions",
            "rows",
            "threads",
            "growth",
            "memory",
            "sizes",
            "libraries",
            "suites",
        ):
            command.add_argument("--only", default="", help="only the workloads with this text in their name")
        if name in ("libraries", "suites"):
            command.add_argument(
                "--environments", metavar="FOLDER", help="where they are or will be made (.venv-libraries)"
            )
        if name == "compile":
            command.add_argument("--long", action="store_true", help="also the 500-op programs (a minute)")
    options = parser.parse_args()
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    if options.command not in (
        "distributed",
        "libraries",
        "suites",
        "passes",
        "memory",
        "sizes",
        "record",
    ):
        require("jax", "autograd")
    if options.command == "record":
        unknown = set(options.commands) - (COMMANDS.keys() - {"record"})
        if unknown:
            parser.error(f"unknown commands: {', '.join(sorted(unknown))}")
        return record(options.commands, ["--repeats", str(options.repeats)] if options.repeats else [])
    if options.command != "suites":  # it counts, with the options that libraries choose
        pin(all_cores=options.command in ("threads", "distributed", "profile"))
        print(describe(), flush=True)
    # Late, after the environment is set: the modules import NumPy and Numba, which read it once.
    module = _MODULES.get(options.command, f"commands.{options.command}")
    return importlib.import_module(f".{module}", __package__).main(options)


if __name__ == "__main__":
    sys.exit(main())
