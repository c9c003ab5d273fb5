# SPDX-License-Identifier: Apache-2.0
"""Use the machine on which Hourglass runs.

cgroups          finds the limits of containers and job schedulers; memory reads those of memory
directories      finds the cache
process          starts process groups that never outlive this process
sandbox          confines a process; syscall_filter has its seccomp program
"""
