"""Serves the pages on this computer, and Netron for the models of the compiles."""

from __future__ import annotations

import importlib.util
import mimetypes
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from emu2.streams import tell

from ..errors import error
from .collect import Compile
from .site import MODELS, data_script

_NETRON = "/netron/"
#: Netron reports its use to its authors unless the browser is told to reach this server alone.
_OWN_SERVER = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' data: blob:; "
    "worker-src 'self' blob:; frame-src 'none'"
)


def netron_folder() -> Path | None:
    """Return the folder of Netron's files; None if the package is not there."""
    found = importlib.util.find_spec("netron")
    places = () if found is None else found.submodule_search_locations or ()
    return next((Path(place) for place in places), None)


def make_server(
    out: Path, compiles: Sequence[Compile], port: int, netron: Path | None
) -> ThreadingHTTPServer:
    """Return a server of the pages in ``out``, which runs once ``serve_forever`` is called.

    P0003 if the port is taken. Only this computer can reach it.
    """
    folders = [found.folder for found in compiles]
    handler = partial(_Handler, directory=str(out), folders=folders, netron=netron)
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as problem:
        raise error("P0003", path=f"port {port}", reason=problem.strerror) from problem


def serve_site(out: Path, compiles: Sequence[Compile], port: int) -> None:
    """Serve until the user stops it."""
    netron = netron_folder()
    if netron is None:
        tell("note: Netron is not installed: pip install '.[tools]' in a clone")
    with make_server(out, compiles, port, netron) as server:
        click.echo(f"http://127.0.0.1:{server.server_address[1]}/ (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("")


class _Handler(SimpleHTTPRequestHandler):
    """Files of the site; below /netron/N/MODEL/ the pages of Netron for one model of compile N."""

    def __init__(
        self, *args: object, directory: str, folders: Sequence[Path], netron: Path | None
    ) -> None:
        self._folders, self._netron = folders, netron
        super().__init__(*args, directory=directory)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if not self._own_host():
            self.send_error(403)
        elif path == "/data/served.js":
            self._send(data_script("served", {"netron": self._links()}), "text/javascript")
        elif path.startswith(_NETRON):
            self._send_netron(path[len(_NETRON) :])
        else:
            super().do_GET()

    def _own_host(self) -> bool:
        """Whether the browser asked this computer by a name of its own, and no page elsewhere."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        return host in ("127.0.0.1", "localhost")

    def _links(self) -> Mapping[int, list[tuple[str, str]]]:
        if self._netron is None:
            return {}
        return {
            number: [
                (name, f"{_NETRON}{number}/{name}/") for name in MODELS if (folder / name).is_file()
            ]
            for number, folder in enumerate(self._folders)
        }

    def _send_netron(self, path: str) -> None:
        number, model, asked = ([*path.split("/", 2), "", ""])[:3]
        known = number.isdigit() and int(number) < len(self._folders) and model in MODELS
        if not known or self._netron is None:
            self.send_error(404)
            return
        file = self._folders[int(number)] / model
        if asked == f"data/{model}":
            self._send_file(file)
        elif asked == "":
            page = (self._netron / "index.html").read_text(encoding="utf-8")
            self._send(_netron_page(page, model).encode(), "text/html", own_server=True)
        elif re.fullmatch(r"[\w.-]+", asked):
            self._send_file(self._netron / asked)
        else:
            self.send_error(404)

    def _send_file(self, file: Path) -> None:
        try:
            data = file.read_bytes()
        except OSError:
            self.send_error(404)
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self._send(data, kind, own_server=True)

    def _send(self, data: bytes, kind: str, own_server: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        if own_server:
            self.send_header("Content-Security-Policy", _OWN_SERVER)
            # Without it, Netron asks another server where in the world the user is.
            self.send_header("Set-Cookie", "consent=0; Path=/netron/; SameSite=Strict")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal shows problems only."""


def _netron_page(page: str, model: str) -> str:
    """Return Netron's page for one model, with what its own server puts in.

    Its date becomes today's, because half a year after it the page shows nothing but a request to
    update.
    """
    today = time.strftime("%Y-%m-%d %H:%M:%S")
    named = escape(model)
    version = f'<meta name="version" content="0.0.0">\n<meta name="file" content="data/{named}">'
    version += f'\n<meta name="identifier" content="{named}">\n<meta name="type" content="Python">'
    page = re.sub(r'<meta name="version" content="[^"]*">', lambda _: version, page)
    return re.sub(
        r'<meta name="date" content="[^"]*">',
        lambda _: f'<meta name="date" content="{today}">',
        page,
    )
