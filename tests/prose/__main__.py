# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.prose [FOLDER…]`: list the violations of the writing guide, and exit with 1 if there are any."""

import sys

from tests.repository import relative

from .rules import RULES

violations = [
    f"[{rule}] {violation}"
    for rule, check in RULES.items()
    for violation in sorted(check())
    if relative(violation.path).startswith(tuple(sys.argv[1:]) or "")
]
print(*violations, sep="\n")
sys.exit(bool(violations))
