"""The master's event bus as progress, highstate's answers as results: pure reading of text."""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PROGRESS = re.compile(r"salt/job/(?P<jid>[0-9]+)/prog/(?P<host>[^/]+)/[0-9]+")
NEW = re.compile(r"salt/job/(?P<jid>[0-9]+)/new")
RETURN = re.compile(r"salt/job/(?P<jid>[0-9]+)/ret/(?P<host>[^/]+)")
BUILD = "saltern/build/progress"
PHASE = "saltern/phase"


@dataclass
class HostProgress:
    """How far one host is in its highstate."""

    done: int = 0
    total: int = 0
    phase: str = ""
    last: str = ""
    changed: int = 0
    failed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    finished: bool = False
    note: str = ""
    stamp: datetime | None = None
    """When its last phase was complete."""


def parse_line(line: str) -> tuple[str, dict[str, Any]] | None:
    """The tag and data of one line of `salt-run state.event pretty=False`."""
    tag, tab, text = line.rstrip("\n").partition("\t")
    if not tab:
        return None
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        return None
    return (tag, data) if isinstance(data, dict) else None


def phase_of(state: dict[str, Any]) -> str:
    """The phase of a state's result: the folder of its SLS."""
    return str(state.get("__sls__") or "").split(".")[0] or "other"


class Progress:
    """The progress of all hosts, fed with events; a host appears with its first event."""

    def __init__(self, hosts: list[str]) -> None:
        self.hosts = {name: HostProgress() for name in hosts}
        self.jid: str | None = None
        self.began: datetime | None = None
        self.failures: list[str] = []
        """What failed since these were last looked at, in words."""

    def feed(self, tag: str, data: dict[str, Any]) -> str | None:
        """Take one event in; returns the host that it was about."""
        self.began = self.began or _stamp(data)
        if tag == BUILD:
            return self._build(data)
        if tag == PHASE:
            return self._phase(data)
        match = NEW.fullmatch(tag)
        if match and data.get("fun") == "state.highstate":
            self.jid = self.jid or match["jid"]
            return None
        match = PROGRESS.fullmatch(tag)
        if match:
            # The bus is heard from a moment after the job began: its first sign may be a state.
            self.jid = self.jid or match["jid"]
            return self._state(match["host"], data.get("data") or {})
        match = RETURN.fullmatch(tag)
        if match and data.get("fun") == "state.highstate":
            host = self.hosts.setdefault(match["host"], HostProgress())
            host.finished = True
            host.note = ""
            return match["host"]
        return None

    def _state(self, name: str, data: dict[str, Any]) -> str:
        host = self.hosts.setdefault(name, HostProgress())
        result = data.get("ret") or {}
        host.done += 1
        host.total = int(data.get("len") or host.total)
        host.phase = phase_of(result)
        host.last = str(result.get("__id__") or "")
        host.note = ""
        host.seconds[host.phase] = host.seconds.get(host.phase, 0.0) + seconds_of(result)
        host.changed += bool(result.get("changes"))
        if result.get("result") is False:
            host.failed += 1
            if result.get("__state_ran__") is not False:
                self.failures.append(f"{name}: {failure(result)}")
        return name

    def _phase(self, data: dict[str, Any]) -> str | None:
        """A gate spoke: how long its phase took, by the master's clock."""
        name, said = data.get("id"), data.get("data") or {}
        if name not in self.hosts or not said.get("phase"):
            return None
        host = self.hosts[name]
        host.phase = str(said["phase"])
        host.last = "gate open" if said.get("open") else "gate CLOSED"
        host.note = ""
        before, now = host.stamp or self.began, _stamp(data)
        if before and now:
            host.seconds[host.phase] = (now - before).total_seconds()
        host.stamp = now
        return str(name)

    def _build(self, data: dict[str, Any]) -> str | None:
        name = data.get("id")
        if name not in self.hosts:
            return None
        inner = data.get("data") or {}
        text = inner.get("text") or inner.get("step") or inner.get("message") or ""
        self.hosts[name].note = f"building: {text}"
        return str(name)


def failure(state: dict[str, Any]) -> str:
    """A failed state in words."""
    return f"{state.get('__id__')} ({state.get('__sls__')}): {state.get('comment')}"


def _stamp(data: dict[str, Any]) -> datetime | None:
    """When the master got an event."""
    try:
        return datetime.fromisoformat(str(data.get("_stamp")))
    except ValueError:
        return None


def seconds_of(state: dict[str, Any]) -> float:
    """How long a state ran; Salt gives milliseconds, as a number."""
    duration = state.get("duration")
    return float(duration) / 1000 if isinstance(duration, int | float) else 0.0


def json_documents(text: str) -> dict[str, Any]:
    """The answers of `salt --out=json`: one JSON document after the other, each {host: answer}."""
    decoder = json.JSONDecoder()
    answers: dict[str, Any] = {}
    position = text.find("{")
    while position != -1:
        try:
            document, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            position = text.find("{", position + 1)
            continue
        answers.update(document)
        position = text.find("{", end)
    return answers


@dataclass
class HostResult:
    """What a host's highstate came to."""

    seconds: dict[str, float] = field(default_factory=dict)
    states: int = 0
    changed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    waiting: int = 0  # states not run because one that they need failed


def result_of(answer: Any) -> HostResult:
    """Read a host's answer to state.highstate: a dict of states, or why there is none."""
    result = HostResult()
    if isinstance(answer, list):
        result.problems = list(dict.fromkeys(str(text) for text in answer))
        return result
    if not isinstance(answer, dict) or not answer:
        result.problems = [str(answer) if answer else "it did not answer"]
        return result
    for state in sorted(answer.values(), key=lambda state: state.get("__run_num__", 0)):
        result.states += 1
        phase = phase_of(state)
        result.seconds[phase] = result.seconds.get(phase, 0.0) + seconds_of(state)
        if state.get("changes"):
            result.changed.append(str(state.get("__id__")))
        if state.get("result") is False:
            if state.get("__state_ran__") is False:
                result.waiting += 1
            else:
                result.problems.append(failure(state))
    if result.waiting and not result.problems:
        result.problems = [f"{result.waiting} states were not run: what they need failed"]
    return result
