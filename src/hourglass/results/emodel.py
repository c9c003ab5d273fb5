# SPDX-License-Identifier: Apache-2.0
"""The E-model: what people would say of a call, from its one-way delay and loss. ITU-T G.107 (06/2015).

R = Ro - Is - Id - Ie,eff, then MOS of R (Annex B). Every parameter but delay and loss has its default (Table 3):

| parameter | value | |
|---|---|---|
| SLR, RLR | 8, 2 dB | loudness, sending and receiving |
| STMR, Ds, Dr | 15, 3, 3 dB | sidetone, D-values |
| TELR, WEPL | 65, 110 dB | echo |
| Nc, Nfor | -70 dBm0p, -64 dBmp | noise of circuit and floor |
| Ps, Pr | 35 dB(A) | noise in the rooms |
| qdu | 1 | quantizing distortion |
| Ie, Bpl | 0, 4.3 | G.711 without concealment (G.113, Appendix I); losses are random (BurstR 1) |

Left out: the advantage factor A (0), and that Is depends on the delay (by less than 0.001 through the sidetone's echo).
"""

from functools import cache
from math import exp, log2, log10, sqrt

SLR, RLR = 8.0, 2.0
OLR = SLR + RLR
STMR, D_SENDING, D_RECEIVING = 15.0, 3.0, 3.0
TELR, WEPL = 65.0, 110.0
NC_DBM, NFOR_DBM = -70.0, -64.0
ROOM_SENDING, ROOM_RECEIVING = 35.0, 35.0
QDU = 1.0
IE, BPL = 0.0, 4.3
DELAY_UNHEARD_MS = 100.0
"""mT of Table 1."""


def _power_sum(*levels: float) -> float:
    """Levels in dB, added as powers."""
    return 10 * log10(sum(10 ** (level / 10) for level in levels))


@cache
def noise() -> float:
    """No, dBm0p (7-3): circuit, sending room, receiving room, floor."""
    sending = ROOM_SENDING - SLR - D_SENDING - 100 + 0.004 * (ROOM_SENDING - OLR - D_SENDING - 14) ** 2
    received_noise = ROOM_RECEIVING + 10 * log10(1 + 10 ** ((10 - STMR - D_RECEIVING) / 10))
    receiving = RLR - 121 + received_noise + 0.008 * (received_noise - 35) ** 2
    return _power_sum(NC_DBM, sending, receiving, NFOR_DBM + RLR)


@cache
def basic() -> float:
    """Ro (7-2)."""
    return 15 - 1.5 * (SLR + noise())


@cache
def simultaneous() -> float:
    """Is (7-8): too loud, sidetone, quantizing; at no delay."""
    loud = (OLR + 0.2 * (64 + noise() - RLR)) / 8
    too_loud = 20 * ((1 + loud**8) ** (1 / 8) - loud)
    side = -_power_sum(-STMR, -TELR)
    sidetone = (
        12 * (1 + ((side - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((side + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((side - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )
    q = 37 - 15 * log10(QDU)
    g = 1.07 + 0.258 * q + 0.0602 * q**2
    y, z = (basic() - 100) / 15 + 46 / 8.4 - g / 9, 46 / 30 - g / 40
    return float(too_loud + sidetone + 15 * log10(1 + 10**y + 10**z))


def _half_and_root(difference: float, under: float) -> float:
    return difference / 2 + sqrt(difference**2 / 4 + under)


def _talker_echo(delay_ms: float) -> float:
    """Idte (7-19)."""
    if delay_ms < 1:
        return 0.0
    terv = TELR - 40 * log10((1 + delay_ms / 10) / (1 + delay_ms / 150)) + 6 * exp(-0.3 * delay_ms**2)
    echo = -1.5 * (noise() - RLR) - (80 + 2.5 * (terv - 14))
    return (_half_and_root(echo, 100) - 1) * (1 - exp(-delay_ms))


def _listener_echo(delay_ms: float) -> float:
    """Idle (7-25), over the four-wire loop, which is twice the delay long."""
    rle: float = 10.5 * (WEPL + 7) * (2 * delay_ms + 1) ** -0.25
    return _half_and_root(basic() - rle, 169)


def _too_late(delay_ms: float) -> float:
    """Idd (7-27)."""
    if delay_ms <= DELAY_UNHEARD_MS:
        return 0.0
    x = log2(delay_ms / DELAY_UNHEARD_MS)
    return float(25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2))


def rating(delay_ms: float, loss: float) -> float:
    """R of a one-way delay in ms and a share of lost packets in [0, 1]."""
    delay = _talker_echo(delay_ms) + _listener_echo(delay_ms) + _too_late(delay_ms)
    percent = 100 * loss
    equipment = IE + (95 - IE) * percent / (percent + BPL)
    return basic() - simultaneous() - delay - equipment


def mos(delay_ms: float, loss: float) -> float:
    """Mean opinion score, 1 to 4.5 (B-4, which dips below 1 by less than 0.02 where R is below 6.5)."""
    r = rating(delay_ms, loss)
    if r <= 0:
        return 1.0
    return 4.5 if r >= 100 else max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)
