"""Starting and ending the lab's mirror (mirror.py)."""

import os
import pwd
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path

from saltern_lab import roots
from saltern_lab.errors import LabError
from saltern_lab.paths import LAB_DIR, cache_dir
from saltern_lab.processes import Process
from saltern_lab.record import Lab, write_json
from saltern_lab.run import last_lines

PORT = 8087
USER = "nobody"


def url(lab: Lab) -> str:
    """Where hosts find `sources/` and `wheels/`."""
    return f"http://{lab.gateway}:{PORT}"


def start(lab: Lab) -> None:
    """Start the lab's mirror unless it runs."""
    process = Process.load(lab.mirror)
    code = (LAB_DIR / "saltern_lab" / "mirror.py").read_bytes()
    version = zlib.crc32(code)
    if process and process.alive():
        if lab.mirror and lab.mirror.get("version") == version:
            return
        process.end()
    want = roots.wanted()
    ours = roots.machine(want["suite"], want["components"])
    user = pwd.getpwnam(USER)
    for folder in ("sources", "wheels"):
        (cache_dir() / folder).mkdir(parents=True, exist_ok=True)
    apt = cache_dir() / "apt"
    apt.mkdir(parents=True, exist_ok=True)
    os.chown(apt, user.pw_uid, user.pw_gid)
    config = lab.folder / "mirror.json"
    write_json(
        config,
        {
            "address": lab.gateway,
            "port": PORT,
            "root": str(cache_dir()),
            "apt_cache": str(apt),
            "upstreams": ours.upstreams,
            "proxy": ours.proxy,
            "uid": user.pw_uid,
            "gid": user.pw_gid,
        },
    )
    log = lab.folder / "mirror.log"
    with log.open("ab") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", "saltern_lab.mirror", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(LAB_DIR)},
        )
    process = Process.of(started.pid)
    lab.mirror = {**process.dump(), "version": version} if process else None
    lab.save()
    _wait(lab, started, log)


def _wait(lab: Lab, started: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and started.poll() is None:
        try:
            socket.create_connection((lab.gateway, PORT), timeout=1).close()
        except OSError:
            time.sleep(0.05)
            continue
        return
    text = log.read_text(encoding="utf-8", errors="replace")
    raise LabError(f"The lab's mirror does not answer at {url(lab)}: {last_lines(text, 3)}")


def stop(lab: Lab) -> None:
    """End the lab's mirror, if it is the one that was started."""
    process = Process.load(lab.mirror)
    if process:
        process.end()
    lab.mirror = None
    lab.save()
