# SPDX-License-Identifier: Apache-2.0
"""Write the files that follow from declarations in the package: other languages and reference pages.

c_header.py   the packet probe's header      pages.py          records, errors, layers
rust.py       its structures, and tables     scenario_page.py  the keys of a scenario
plan_rust.py  the parts of a plan
"""
