# SPDX-License-Identifier: Apache-2.0
"""Use the machine on which Hourglass runs.

directories      finds the cache
process          starts process groups that never outlive this process
sandbox          confines a process; syscall_filter has its seccomp program
"""
