"""The site mirror of a lab: one small HTTP server on the bridge.

It serves `sources/` and `wheels/` of the cache, as an air-gapped site would from any web server,
and it is the apt proxy of the hosts: packages are kept for good (their content never changes under
a name), indices for a day. It answers for the machine's own apt archives only, and runs without
privileges.

Run as `python -m saltern_lab.mirror CONFIG.json` by mirror_control.py; needs nothing beyond the
standard library.
"""

import calendar
import contextlib
import encodings.idna  # noqa: F401  (before privileges are dropped: Python may lie in /root)
import html
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

INDEX_KEPT_S = 24 * 3600
IMMUTABLE = re.compile(r"/pool/|/by-hash/")
STATIC = ("sources", "wheels")


class Archive:
    """The kept copy of the machine's apt archives."""

    def __init__(self, cache: Path, upstreams: dict[str, str], proxy: str | None) -> None:
        self.cache = cache
        self.upstreams = upstreams
        handlers = [urllib.request.ProxyHandler({"http": proxy, "https": proxy})] if proxy else []
        self.opener = urllib.request.build_opener(*handlers)
        self.locks: dict[str, threading.Lock] = {}
        self.locks_lock = threading.Lock()

    def upstream(self, url: str) -> str | None:
        """Where a hosts' address really is; None if it is none of the machine's archives."""
        for plain, real in self.upstreams.items():
            if url.startswith(f"{plain}/") and "/../" not in url:
                return real + url[len(plain) :]
        return None

    def file(self, url: str) -> Path | None:
        """The kept file for an address, fetched if need be; None if the archive has no such file.

        Raises OSError when it is neither kept nor to be had.
        """
        real = self.upstream(url)
        if real is None:
            return None
        kept = self.cache / urllib.parse.quote(url.split("://", 1)[1], safe="/+~.:-_")
        with self.locks_lock:
            lock = self.locks.setdefault(url, threading.Lock())
        with lock:
            if kept.is_file() and (IMMUTABLE.search(url) or _age(kept) < INDEX_KEPT_S):
                return kept
            return self._fetch(real, kept)

    def _fetch(self, real: str, kept: Path) -> Path | None:
        request = urllib.request.Request(real)
        if kept.is_file():
            request.add_header("If-Modified-Since", _http_date(kept.stat().st_mtime))
        try:
            with self.opener.open(request, timeout=60) as answer:
                _keep(answer, kept)
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_MODIFIED:
                (kept.parent / f"{kept.name}.seen").touch()
                return kept
            if error.code in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN, HTTPStatus.GONE}:
                return None
            raise
        except OSError:
            if kept.is_file():
                return kept
            raise
        return kept


def _keep(answer: Any, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".fetch-", dir=kept.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(answer, file, 1 << 18)
        length = answer.headers.get("Content-Length")
        if length is not None and int(length) != Path(name).stat().st_size:
            raise OSError(f"{answer.url}: {Path(name).stat().st_size} of {length} bytes arrived")
        modified = _mtime(answer.headers.get("Last-Modified"))
        if modified:
            os.utime(name, (modified, modified))
        Path(name).replace(kept)
        (kept.parent / f"{kept.name}.seen").touch()
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _age(kept: Path) -> float:
    try:
        return time.time() - (kept.parent / f"{kept.name}.seen").stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _http_date(seconds: float) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(seconds))


def _mtime(header: str | None) -> float | None:
    if not header:
        return None
    with contextlib.suppress(ValueError):
        return calendar.timegm(time.strptime(header, "%a, %d %b %Y %H:%M:%S GMT"))
    return None


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD of kept files."""

    protocol_version = "HTTP/1.1"
    server: "Mirror"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path.startswith("http://"):
            try:
                file = self.server.archive.file(self.path)
            except OSError as error:
                self._text(HTTPStatus.BAD_GATEWAY, f"the archive does not answer: {error}")
                return
        else:
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            file = static_file(self.server.root, path)
            if file is not None and file.is_dir():
                self._listing(file)
                return
        if file is None or not file.is_file():
            self._text(HTTPStatus.NOT_FOUND, "the mirror has no such file")
            return
        self._file(file)

    def _file(self, file: Path) -> None:
        with file.open("rb") as content:
            stat = os.fstat(content.fileno())
            modified = _http_date(stat.st_mtime)
            if self.headers.get("If-Modified-Since") == modified:
                self.send_response(HTTPStatus.NOT_MODIFIED)
                self.end_headers()
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(stat.st_size))
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Last-Modified", modified)
            self.end_headers()
            if self.command == "GET":
                shutil.copyfileobj(content, self.wfile, 1 << 18)

    def _listing(self, folder: Path) -> None:
        names = sorted(p.name + ("/" if p.is_dir() else "") for p in folder.iterdir())
        links = "".join(
            f'<a href="{urllib.parse.quote(name)}">{html.escape(name)}</a><br>\n' for name in names
        )
        self._text(
            HTTPStatus.OK, f"<!DOCTYPE html><html><body>\n{links}</body></html>\n", "text/html"
        )

    def _text(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        print(f"{self.log_date_time_string()} {self.client_address[0]} {format % args}", flush=True)


def static_file(root: Path, path: str) -> Path | None:
    """The file or folder of `sources/` or `wheels/` that a request names, or None."""
    parts = [part for part in path.split("/") if part]
    if not parts or parts[0] not in STATIC or any(part.startswith(".") for part in parts):
        return None
    return root.joinpath(*parts)


class Mirror(ThreadingHTTPServer):
    """The server with what its handlers need."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], root: Path, archive: Archive) -> None:
        super().__init__(address, Handler)
        self.root = root
        self.archive = archive


def main() -> None:
    """Bind, drop privileges, serve until ended."""
    config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    archive = Archive(Path(config["apt_cache"]), config["upstreams"], config.get("proxy"))
    server = Mirror((config["address"], config["port"]), Path(config["root"]), archive)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(config["gid"])
        os.setuid(config["uid"])
    server.serve_forever()


if __name__ == "__main__":
    main()
