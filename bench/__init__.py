# SPDX-License-Identifier: Apache-2.0
"""What a run costs. `python -m bench [--quick]`, or `make bench`."""
