# SPDX-License-Identifier: Apache-2.0
"""A web site: a page that prints its loading time, and pictures of 100 kB."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/><!--%s--></svg>' % (b"x" * 100_000)
PAGE = (
    "<html><body>"
    + "".join(f'<img src="/{number}.svg">' for number in range(6))
    + "<p></p><script>onload = () => document.querySelector('p').textContent ="
    " `loaded after ${performance.now().toFixed(1)} ms`</script></body></html>"
).encode()


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind, content = ("image/svg+xml", PICTURE) if self.path.endswith(".svg") else ("text/html", PAGE)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ThreadingHTTPServer(("", 80), Site).serve_forever()
