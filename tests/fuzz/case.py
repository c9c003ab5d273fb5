# SPDX-License-Identifier: Apache-2.0
"""One scenario of `make fuzz`. Processes of a pool import it by name, which they cannot do with `__main__`."""

from collections.abc import Sequence
from pathlib import Path

from hourglass.scenario.toml_text import toml_text
from hourglass.studies.shrink import shrunk

from .draw import Data, draw, refused
from .judge import kind, problem_of

FOLDER = Path("runs/fuzz")


def case(seed: str, kernels: Sequence[str], number: int) -> tuple[int, str | None]:
    """Make one case, on the kernels in turn. Shrink and write a finding."""
    try:
        data = draw(f"{seed} {number}", kernels[number % len(kernels)])
    except Exception as error:  # of a scenario that is loaded: a refusal is an InputError
        return number, f"it cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    problem = problem_of(data)
    if problem and not problem.startswith("refused"):
        write(FOLDER / f"{seed}-{number}.toml", data, problem)  # in case shrinking is interrupted
        smaller = shrunk(
            data,
            lambda candidates: [kind(problem_of(candidate) or "") == kind(problem) for candidate in candidates],
            valid=lambda candidate: refused(candidate) is None,
        )
        write(FOLDER / f"{seed}-{number}.toml", smaller, problem)
    return number, problem


def write(path: Path, data: Data, problem: str) -> None:
    """Write the scenario as TOML."""
    comment = "".join(f"# {line}\n" for line in problem.splitlines())
    path.write_text(f"# SPDX-License-Identifier: Apache-2.0\n{comment}" + toml_text(data))
