"""What slurmd calls: runs this node's checks, then the drain logic. No Salt, no daemon.

    health_report.py [--verbose]
    health_report.py --check          what LBNL NHC finds, as JSON; nothing is drained

It always ends with 0: slurmd 24.11.5 would only log another status, and other releases may hold a
node back for it. What it did is told to the journal, and to the master's bus through files in
outbox/. While every check passes and nothing of ours is open, Slurm is asked now and then only.
"""

import fcntl
import json
import os
import subprocess
import sys
import syslog
import time

LIBRARY = "/usr/lib/saltern"
SETTINGS = "/etc/saltern/health.json"
STATE = "/var/lib/saltern/health"
LOOK_S = 900  # a healthy node looks at Slurm after so long: a drain of ours may be older than it
ANSWER_S = 10
BOARD_S = 15  # every node of the cluster
WHOLE = 500  # nodes; of a larger cluster a sample is asked for, or an outage would drown slurmctld
SAMPLE = 16
BEFORE = 8  # nodes before this one that decide whether it could be the first
RETRY_S = 60
EVENTS = 200  # of an outbox that nobody empties, the newest are kept
LOCK = "/run/saltern-health.lock"

sys.path[:0] = [LIBRARY]


def main(words):
    """One run. Two at a time would decide twice: the second leaves it to the first."""
    os.umask(0o077)
    settings = _json(SETTINGS)
    if settings is None:
        return
    if "--check" in words:
        print(json.dumps(shown(checked(settings))), flush=True)
        return
    os.makedirs(STATE, mode=0o700, exist_ok=True)
    with open(LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        results = checked(settings)
        saved = _json(f"{STATE}/record.json") or {}
        bad = [(cause, finding) for cause, finding in results if finding]
        quiet = not (bad or saved.get("open") or saved.get("drained") or saved.get("left"))
        looked = _modified(f"{STATE}/record.json")
        if quiet and 0 <= time.time() - looked < LOOK_S:
            return
        report(settings, saved, results)


def checked(settings):
    """[(cause, finding)] of every check; a checker that does not run is a finding too."""
    try:
        if settings["provider"] == "lbnl":
            return lbnl(settings)
        return builtin(settings)
    except Exception as error:  # noqa: BLE001 - it must be told, whatever it is
        return [("check_program", f"cannot run: {type(error).__name__}: {error}")]


def builtin(settings):
    """Our checker, in this process: a second one would take longer to start than it works."""
    import node_health

    variables = {}
    with open(node_health.CONF, encoding="utf-8", errors="replace") as file:
        text = file.read()
    host = os.uname().nodename
    variables |= {"HOSTNAME": host, "HOSTNAME_S": host.partition(".")[0]}
    checks = node_health.configuration(text, host, variables)
    node = node_health.Node("", variables)
    budget, limit = settings["check_timeout_s"], settings["timeout_s"]
    found = node_health.run(checks, node, float(budget), float(limit))
    return merged([(one.check.cause, one.finding) for one in found])


def lbnl(settings):
    """LBNL NHC, which only tells (-a: every check). It names what fails, not what passes."""
    command = ["/usr/sbin/nhc", "-a", "-l", "-", "-t", str(settings["timeout_s"]), "MARK_OFFLINE=0"]
    limit = settings["timeout_s"] + 2
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        try:
            said, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            return [("check_program", f"hung: nhc did not end within {limit} s")]
    found = []
    for line in said.splitlines():
        _, mark, failed = line.partition("Health check failed:")
        if mark:
            name, _, finding = failed.strip().partition(":")
            if not name.startswith("check_"):
                name, finding = "check_nhc", failed
            found.append((name, finding.strip() or "failed"))
    if run.returncode and not found:
        found = [("check_program", f"nhc ended with {run.returncode}: {said.strip()[-200:]}")]
    return merged(found or [("check_program", "")])


def shown(results):
    """Results as node_health.py prints them."""
    checks = [
        {
            "check": cause.partition("(")[0],
            "target": "",
            "cause": cause,
            "passed": not finding,
            "finding": finding,
        }
        for cause, finding in results
    ]
    return {"passed": all(check["passed"] for check in checks), "checks": checks}


def merged(results):
    """One finding a cause: of several lines for the same thing, the first that failed."""
    found = {}
    for cause, finding in results:
        found[cause] = found.get(cause) or finding
    return list(found.items())


def report(settings, saved, results):
    """The drain logic, with this node as its world."""
    from saltern import drain_run
    from saltern.drain_record import Record, Result
    from saltern.drain_rules import Policy

    record = Record.of(saved)
    found = [Result(cause, finding) for cause, finding in results]
    world = World(settings, drain_run.Away)
    decision = drain_run.run(record, found, Policy.of(settings), world)
    if decision.left and decision.record.open:
        _log(f"left alone: {decision.left}")
    undelivered = decision.record.open and (decision.record.away_since or decision.held_up)
    if undelivered:
        _again()


class World:
    """This node, its Slurm and its files (saltern.drain_run.World)."""

    def __init__(self, settings, away):
        self.name, self._settings, self._away = settings["node"], settings, away
        self._around = None  # (partition, nodes) when a sample will do

    def now(self):
        return time.time()

    def node(self):
        glance = self._glance(self.name)
        if glance:
            self._around = (glance.partition, glance.nodes)
            return glance.node
        for node in self._show(["node", self.name], BOARD_S):  # in no partition
            if node.name == self.name:
                return node
        raise self._away(f"slurmctld has no node {self.name}")

    def board(self):
        if self._around is None or self._around[1] <= WHOLE:
            return self._show(["nodes"], BOARD_S)
        import random

        others = [name for name in self._names() if name != self.name]
        return self._some([self.name, *random.sample(others, min(SAMPLE, len(others)))])

    def closer(self, board):
        if self._around is None or self._around[1] <= WHOLE:
            return board
        names = self._names()
        at = names.index(self.name) if self.name in names else 0
        before = self._some(names[max(0, at - BEFORE) : at])
        if any(node.causes for node in before):
            return [*board, *before]
        return self._show(["nodes"], BOARD_S)

    def _names(self):
        """The nodes of the partition in the order of their names; nobody is asked for it."""
        said = self._slurm("scontrol", ["show", "hostnames", self._around[0]], ANSWER_S)
        return sorted(said.split())

    def _some(self, names):
        found = [self._glance(name) for name in names]
        return [glance.node for glance in found if glance]

    def _glance(self, name):
        from saltern import drain_board, slurm_answers

        said = self._slurm("sinfo", ["--noheader", "--nodes", name, "--json"], ANSWER_S)
        try:
            return drain_board.glance(said, name)
        except (slurm_answers.Unreadable, KeyError, TypeError) as error:
            raise self._away(f"sinfo: {error}") from None

    def _show(self, what, seconds):
        from saltern import drain_board, slurm_answers

        said = self._slurm("scontrol", ["show", *what, "--json"], seconds)
        try:
            return drain_board.nodes(said)
        except (slurm_answers.Unreadable, KeyError) as error:
            raise self._away(str(error)) from None

    def update(self, values):
        words = [f"{key}={value}" for key, value in values.items()]
        self._slurm("scontrol", ["update", f"nodename={self.name}", *words], ANSWER_S)
        _log(" ".join(words))

    def _slurm(self, program, words, seconds):
        path = os.path.join(os.path.dirname(self._settings["scontrol"]), program)
        try:
            run = subprocess.run(
                [path, *words],
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._away(str(error)) from None
        if run.returncode:
            raise self._away((run.stderr or run.stdout).strip()[:200])
        return run.stdout

    def wait(self, seconds):
        time.sleep(seconds)

    def keep(self, record):
        _write(f"{STATE}/record.json", record.data())

    def tell(self, tag, data):
        """A file an event; _beacons/saltern_health.py takes it to the master's bus."""
        folder = f"{STATE}/outbox"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        told = {"tag": tag, "node": self.name, "time": time.time(), "data": dict(data)}
        _write(f"{folder}/{time.time_ns()}.json", told)
        for name in sorted(os.listdir(folder))[:-EVENTS]:
            os.unlink(f"{folder}/{name}")
        _log(f"{tag}: {json.dumps(dict(data), ensure_ascii=False)}")


def _again():
    """Deliver soon: slurmctld would call only after the interval, and one that is away never."""
    subprocess.run(
        [
            *("systemd-run", "--quiet", "--collect", f"--on-active={RETRY_S}"),
            *("--unit=saltern-health-again", f"{LIBRARY}/health_program"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,  # one that is armed already is enough
        timeout=ANSWER_S,
    )


def _json(path):
    """A file's data; None if there is none, or half of one."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _write(path, data):
    """Whole or not at all, for root only."""
    aside = f"{os.path.dirname(path)}/.{os.path.basename(path)}.new"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(data, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _modified(path):
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _log(text):
    syslog.syslog(syslog.LOG_NOTICE, text)
    if "--verbose" in sys.argv:
        print(text, flush=True)


if __name__ == "__main__":
    syslog.openlog("saltern-health", syslog.LOG_PID, syslog.LOG_DAEMON)
    try:
        main(sys.argv[1:])
    except Exception as error:
        syslog.syslog(syslog.LOG_ERR, f"{type(error).__name__}: {error}")
        if "--verbose" in sys.argv:
            raise
    os._exit(0)
