# SPDX-License-Identifier: Apache-2.0
"""The tests, each declared once: Flent's names, which flows they have, and what can be set."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TestKind:
    """`uploads` and `downloads`: how many flows; the name of the parameter that says how many; or 0."""

    __test__ = False

    description: str
    uploads: int | str = 0
    downloads: int | str = 0

    @property
    def parameters(self) -> tuple[str, ...]:
        """The stream parameters of the test."""
        return tuple(one for one in (self.uploads, self.downloads) if isinstance(one, str))

    @property
    def loaded(self) -> bool:
        """Whether it has flows at all."""
        return bool(self.uploads or self.downloads)


STREAM_PARAMETERS = ("upload_streams", "download_streams")

TESTS = {
    "ping": TestKind("Pings alone, for `length` seconds."),
    "tcp_upload": TestKind("One TCP flow from client to server.", uploads=1),
    "tcp_download": TestKind("One TCP flow from server to client.", downloads=1),
    "tcp_bidirectional": TestKind("One TCP flow each way.", uploads=1, downloads=1),
    "tcp_nup": TestKind("`upload_streams` TCP flows from client to server.", uploads="upload_streams"),
    "tcp_ndown": TestKind("`download_streams` TCP flows from server to client.", downloads="download_streams"),
}
