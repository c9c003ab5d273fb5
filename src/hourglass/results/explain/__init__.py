# SPDX-License-Identifier: Apache-2.0
"""Explain a run: where its latency arises, what limits it, and which rule decides the queue's size.

loads.py       the loads, hop by hop: how full each hop is
senders.py     what holds the senders' data back
latency.py     the streams that feel the latency, and its layers
bottleneck.py  the rules that name the bottleneck
size_rules.py  the rules that name what decides the size of a queue
sentences.py   all of it as sentences with their figures
"""

from hourglass.results.explain.sentences import Explanation, explanation_of

__all__ = ["Explanation", "explanation_of"]
