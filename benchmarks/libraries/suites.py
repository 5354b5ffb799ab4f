"""The libraries' own tests, from their source distributions, on functrans and on JAX: ``python -m benchmarks suites``.

Of the tests that pass on JAX, it counts those that pass on functrans, and lists the others.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

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
    """

    paths: tuple[str, ...]
    without: tuple[str, ...] = ()


#: Libraries whose source distributions have tests; of long suites a sample. (Those of equinox, lineax, optimistix,
#: diffrax and jaxopt have none.)
SUITES = {
    "optax": Suite(("optax",)),
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
    "numpyro": Suite(
        (
            "test/test_constraints.py", "test/test_distributions_util.py", "test/test_handlers.py",
            "test/test_diagnostics.py", "test/test_optimizers.py", "test/test_transforms.py", "test/test_util.py",
            "test/test_distributions_mixture.py", "test/test_flows.py", "test/test_nn.py", "test/test_pickle.py",
        )
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
        what = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *what, name.replace("-", "==")]
        subprocess.run(command, check=False)  # it may fail to build it, after the download
        archive = folder / f"{name}.tar.gz"
        if not archive.exists():
            raise SystemExit(f"benchmarks: no source distribution of {name}: {' '.join(command)}")
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder / name


def outcomes(side: Side, suite: Suite, source: Path) -> dict[str, str]:
    """Each test, and in a word what became of it; after that, the first line of its error."""
    report = source.parent / f"{source.name}-{side.name}.xml"
    report.unlink(missing_ok=True)
    leave = [f"--ignore={path}" for path in suite.without]
    options = [
        "-q",
        "-W",
        "ignore",
        "-p",
        "no:cacheprovider",
        f"--timeout={PATIENCE}",
        f"--junitxml={report}",
    ]
    # Tests import the installed library, not its sources.
    done = side.run("pytest", "--import-mode=importlib", *options, *leave, *suite.paths, cwd=source)
    if not report.exists():
        raise SystemExit(f"benchmarks: {source.name} on {side.name}: {(done.stdout + done.stderr)[-2000:]}")
    return {_name(case): _outcome(case) for case in ElementTree.parse(report).iter("testcase")}


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            return f"{kind}: {' '.join((found.get('message') or '').split())[:200]}"
    return "passed"


def main(options: Any) -> int:
    """Print the counts of each suite, and what fails on functrans alone; 1 if less than 95 % pass."""
    both = sides(options.environments)
    enough = True
    for library, suite in SUITES.items():
        if options.only not in library:
            continue
        source = unpacked(library, Path(both[0].python).parents[2] / "suites")
        ours, theirs = (outcomes(side, suite, source) for side in both)
        passing = [name for name, outcome in theirs.items() if outcome == "passed"]
        missed = {name: ours.get(name, "not collected") for name in passing}
        missed = {name: outcome for name, outcome in missed.items() if outcome != "passed"}
        share = 1 - len(missed) / max(1, len(passing))
        enough &= share >= 0.95
        print(
            f"{library} {version_of(library)}: {len(theirs)} tests, {len(passing)} pass on JAX; of these "
            f"{len(passing) - len(missed)} on functrans, {100 * share:.1f} %"
        )
        for name, outcome in missed.items():
            print(f"  {name}\n    {outcome}")
    return int(not enough)
