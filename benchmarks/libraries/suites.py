"""The libraries' own tests, from their source distributions, on functrans and on JAX: ``python -m benchmarks suites``.

JAX runs those that fail on functrans: tests that pass on JAX alone are counted and listed. So the share that is printed
counts a test that passes on functrans as one that passes on JAX.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from .environments import VERSIONS, Side, sides

#: Seconds for one test.
PATIENCE = 120


class Suite(NamedTuple):
    """The tests of a library.

    Attributes
    ----------
    paths : tuple of str
        Files and folders of its source distribution.
    without : tuple of str
        Of these, what is left out.
    every : int
        1 runs every test, 4 every fourth: a sample of a long suite.
    """

    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    every: int = 1


#: Libraries whose source distributions have tests; of long suites a sample. (Those of equinox, lineax, optimistix,
#: diffrax and jaxopt have none.)
SUITES = {
    # Two files need scikit-learn.
    "optax": Suite(("optax",), ("optax/_src/alias_test.py", "optax/schedules/_schedule_test.py"), 8),
    "tinygp": Suite(("tests",)),
    "blackjax": Suite(
        (
            "tests/mcmc/test_trajectory.py", "tests/mcmc/test_integrators.py", "tests/mcmc/test_metrics.py",
            "tests/mcmc/test_proposal.py", "tests/mcmc/test_barker.py", "tests/mcmc/test_slice.py",
            "tests/optimizers", "tests/smc/test_resampling.py", "tests/smc/test_smc_ess.py", "tests/smc/test_smc.py",
            "tests/test_diagnostics.py", "tests/test_util.py", "tests/test_compilation.py", "tests/vi",
            "tests/sgmcmc/test_gradients.py",
        )
    ),
    # The tests of pickling need funsor.
    "numpyro": Suite(
        (
            "test/test_constraints.py", "test/test_distributions_util.py", "test/test_handlers.py",
            "test/test_diagnostics.py", "test/test_optimizers.py", "test/test_transforms.py", "test/test_util.py",
            "test/test_distributions_mixture.py", "test/test_flows.py", "test/test_nn.py",
        ),
        every=3,
    ),
}  # fmt: skip


def version_of(library: str) -> str:
    """The version that goes together with the others."""
    rows = dict(line.split("==") for line in VERSIONS.read_text().splitlines() if "==" in line)
    return rows[library]


def unpacked(library: str, folder: Path) -> Path:
    """The folder of a library's source distribution, which pip downloads at first."""
    name = f"{library}-{version_of(library)}"
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        what = ["--no-deps", "--no-binary", library, "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *what, name.replace("-", "==")]
        subprocess.run(command, check=False)  # pip reads its metadata after the download, which may fail
        archive = folder / f"{name}.tar.gz"
        if not archive.exists():
            raise SystemExit(f"benchmarks: no source distribution of {name}: {' '.join(command)}")
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder / name


def tests_of(side: Side, suite: Suite, source: Path) -> list[str]:
    """The names of the tests, as pytest has them: all, or a sample."""
    leave = [f"--ignore={path}" for path in suite.without]
    done = _pytest(side, source, "--collect-only", *leave, *suite.paths)
    names = [line for line in done.stdout.splitlines() if "::" in line and ".py" in line.split("::")[0]]
    if done.returncode:
        raise SystemExit(f"benchmarks: {source.name} on {side.name}: {(done.stdout + done.stderr)[-2000:]}")
    return names[:: suite.every]


def outcomes(side: Side, names: list[str], source: Path) -> dict[str, str]:
    """Each of these tests, and in a word what became of it; after that, the first line of its error."""
    report = source.parent / f"{source.name}-{side.name}.json"
    report.unlink(missing_ok=True)
    listed = report.with_suffix(".txt")
    listed.write_text("\n".join(names))
    limit = f"--timeout={PATIENCE}"
    done = _pytest(side, source, limit, "--json-report", f"--json-report-file={report}", f"@{listed}")
    if not report.exists():
        raise SystemExit(f"benchmarks: {source.name} on {side.name}: {(done.stdout + done.stderr)[-2000:]}")
    return {test["nodeid"]: _outcome(test) for test in json.loads(report.read_text())["tests"]}


def _pytest(side: Side, source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Tests import the installed library, not its sources."""
    options = ["-o", "addopts=", "-q", "-W", "ignore", "-p", "no:cacheprovider", "--import-mode=importlib"]
    return side.run("pytest", *options, *arguments, cwd=source)


def _outcome(test: dict[str, Any]) -> str:
    crashes = [test[part].get("crash", {}) for part in ("setup", "call", "teardown") if part in test]
    messages = [" ".join(crash.get("message", "").split())[:200] for crash in crashes]
    return ": ".join([test["outcome"], *filter(None, messages)])


def main(options: Any) -> int:
    """Print the counts of each suite, and what fails on functrans alone; 1 if less than 95 % pass."""
    both = sides(options.environments)
    enough = True
    for library, suite in SUITES.items():
        if options.only in library:
            source = unpacked(library, Path(both[0].python).parents[2] / "suites")
            share = compared(library, both, suite, source)
            enough &= share >= 0.95
    return int(not enough)


def compared(library: str, both: tuple[Side, Side], suite: Suite, source: Path) -> float:
    """Run one suite and print what it found; the share of the tests that pass on functrans."""
    ours = outcomes(both[0], tests_of(both[0], suite, source), source)
    passed = [name for name, outcome in ours.items() if outcome == "passed"]
    failed = [name for name, outcome in ours.items() if outcome.startswith(("failed", "error"))]
    theirs = outcomes(both[1], failed, source) if failed else {}
    missed = [name for name in failed if theirs.get(name) == "passed"]
    share = len(passed) / max(1, len(passed) + len(missed))
    print(
        f"{library} {version_of(library)}: {len(ours)} tests, {len(passed)} pass on functrans, {len(failed)} fail; of "
        f"these {len(missed)} pass on JAX: {100 * share:.1f} %"
    )
    for name in missed:
        print(f"  {name}\n    {ours[name]}")
    return share
