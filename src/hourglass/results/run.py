# SPDX-License-Identifier: Apache-2.0
"""`Run`: a run directory as an object. Everything is read when first asked for."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from hourglass.errors import HourglassError, InputError
from hourglass.results import probe, records, sockets
from hourglass.results.files import PLAN_FILE, RECORDS_FILE, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE


class Run:
    """One finished run.

    The record tables (columns and units: ARCHITECTURE.md, "The records") are `tcp`, `pings`, `devices`, `qdisc`,
    `qdisc_stats`, `ethtool`, `flows`, `facts`, `radios`, `stations`, `datagrams`, `fetches` (the tables `radio`,
    `station`, `datagram`, `fetch`), and from the probe `packets`, `layer_totals` (the table `layer`), `queues`,
    `drops`, `balance`. Wherever there is a `flow` or `probe`, a column `stream` has its name. What need not be there
    is an empty frame with the right columns; any other table that was not written is empty and has none. `layers` is
    `packets` in long form,
    computed when asked for.
    """

    def __init__(self, path: Path) -> None:
        """Opens the run in directory `path`. Raises `InputError` when there is none or when it failed."""
        self.path = path
        if not path.is_dir():
            raise InputError("run", str(path), "there is no such directory; `hourglass run` makes one")
        if not (path / RUN_FILE).is_file():
            raise InputError("run", str(path), f"is not a run directory: it holds no {RUN_FILE}")
        if self.info.get("status") != "complete":
            reason = self.info.get("error", "unknown reason")
            raise InputError("run", str(path), f"is a run that did not complete ({reason}); run the scenario again")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def moved(self, place: Path) -> None:
        """Says that the directory has been renamed: what has been read of it is not read again."""
        self.path = place
        if "tables" in vars(self):
            self.tables.path = place / RECORDS_FILE

    @cached_property
    def info(self) -> dict[str, Any]:
        """`run.json`: engine, kernel, seed, virtual and wall seconds, digest, status, warnings."""
        return self._json(RUN_FILE)

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario: `hourglass.scenario.Scenario` as plain data, every default spelled out."""
        return self._json(SCENARIO_FILE)

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The plan that was executed, times in ns (ARCHITECTURE.md, "The plan")."""
        return self._json(PLAN_FILE)

    @cached_property
    def tables(self) -> records.Tables:
        """All record tables by name."""
        return records.Tables(self.path / RECORDS_FILE)

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """Sockets at sampling instants; `bbr_phase` is derived from BBR's gains."""
        return sockets.with_phase(self._table("tcp"))

    @cached_property
    def pings(self) -> pl.DataFrame:
        return self._table("ping")

    @cached_property
    def packets(self) -> pl.DataFrame:
        """A row per packet and node that it passed, a column of ns per layer."""
        return probe.coded(self._table("packet"), self.plan)

    @cached_property
    def layers(self) -> pl.DataFrame:
        """`packets` in long form: `t_ns, end_ns, stream, way, packet, data, visit, node, layer, ns`; no zeros."""
        return probe.long(self.packets)

    @cached_property
    def layer_totals(self) -> pl.DataFrame:
        """Sums over all packets of a stream so far, per node, over time."""
        return probe.coded(self._table("layer"), self.plan)

    @cached_property
    def path_order(self) -> list[str]:
        """The nodes from client to server, then those beside the path."""
        return probe.path_order(self.packets, self.plan)

    @cached_property
    def radios(self) -> pl.DataFrame:
        """The radios' own counters at sampling instants, in long form: `t_ns, node, device, name, value`."""
        return self._table("radio")

    @cached_property
    def stations(self) -> pl.DataFrame:
        """The same of each radio they talk to; `station` is its node."""
        return self._table("station")

    @cached_property
    def queues(self) -> pl.DataFrame:
        return self._table("queue")

    @cached_property
    def drops(self) -> pl.DataFrame:
        return self._table("drop")

    @cached_property
    def balance(self) -> pl.DataFrame:
        return self._table("balance")

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """One-way packets: `t_ns, datagram, seq, owd_ns` (null: lost), `refused` (by the sender's socket)."""
        return self._table("datagram")

    @cached_property
    def fetches(self) -> pl.DataFrame:
        """Fetches: `t_ns, fetch, seq, bytes`, and since `t_ns`: `first_ns` (byte), `done_ns` (null: not finished)."""
        return self._table("fetch")

    @cached_property
    def devices(self) -> pl.DataFrame:
        return self._table("device")

    @cached_property
    def ethtool(self) -> pl.DataFrame:
        return self._table("ethtool")

    @cached_property
    def qdisc(self) -> pl.DataFrame:
        return self._table("qdisc")

    @cached_property
    def qdisc_stats(self) -> pl.DataFrame:
        return self._table("qdisc_stat")

    @cached_property
    def flows(self) -> pl.DataFrame:
        return self._table("flow")

    @cached_property
    def facts(self) -> pl.DataFrame:
        return self._table("fact")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The object `--json` prints: as it was written when the run ended, if that was by the same code of this
        package, and otherwise computed from the records."""
        from hourglass.results.summary import code, summarize

        if not (self.path / SUMMARY_FILE).is_file():
            return summarize(self)
        if self.info.get("results") == code():
            return self._json(SUMMARY_FILE)
        return summarize(Run(self.path))  # of many older runs, all tables are too many to be kept

    def _table(self, name: str) -> pl.DataFrame:
        return probe.named(probe.table(self.tables, name), self.plan)

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            value = json.loads(path.read_text())
        except FileNotFoundError:
            raise HourglassError(f"{path}: the run directory lacks this file; run the scenario again") from None
        except (OSError, ValueError) as error:
            raise HourglassError(f"{path}: cannot be read ({error}); run the scenario again") from error
        if not isinstance(value, dict):
            raise HourglassError(f"{path}: is not a JSON object; run the scenario again")
        return value
