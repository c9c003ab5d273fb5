# SPDX-License-Identifier: Apache-2.0
"""A congestion control as an environment of Gymnasium: an agent sets window and pacing rate of a flow, slice by slice.

congestion.py   the environment: actions, observations, rewards
episode.py      a run that stops at each decision
steered.c       the congestion control that obeys
"""

from hourglass.environment.congestion import ACTION, OBSERVATION, CongestionEnv, Slice, power

__all__ = ["ACTION", "OBSERVATION", "CongestionEnv", "Slice", "power"]
