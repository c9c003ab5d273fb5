# SPDX-License-Identifier: Apache-2.0
"""A kernel tree's own network tests, as programs in its guest: `hourglass kernel selftests`.

build.py     a tree's tools/testing/selftests → a root with what is compiled, and the tests in it
run.py       each test in a guest of its own → its verdict
verdict.py   what a test said and how it ended → pass, fail or skip, and why
page.py      the verdicts as a table, in words
"""
