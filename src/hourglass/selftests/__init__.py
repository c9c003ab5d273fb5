# SPDX-License-Identifier: Apache-2.0
"""A kernel tree's own network tests, as programs in its guest: `hourglass kernel selftests`.

build.py          a tree's tools/testing/selftests → a root with the compiled programs and the tests
selftest_runs.py  each test in its own guest → its verdict
verdict.py        the output and the exit status of a test → pass, fail or skip, with the reason
page.py           the verdicts as a Markdown page
"""
