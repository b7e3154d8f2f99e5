"""Modules of phase 4: what they conclude from what programs say, and what they never pass on."""

import json
import os
from unittest.mock import Mock, create_autospec

import pytest
from salt.exceptions import CommandExecutionError
from saltern import database_conf, plan, view
from support import ROOT, SCHEMA, example, load

FIXTURES = ROOT / "tests" / "fixtures" / "slurm-24.11.5"
VIEW = view.of(plan.resolve(SCHEMA, example()), "mgmt01")


def said(stdout="", stderr="", retcode=0):
    return {"stdout": stdout, "stderr": stderr, "retcode": retcode}


def of(host, raw):
    """A module's `saltern.view` on a host of a plan."""
    mine = view.of(plan.resolve(SCHEMA, raw), host)

    def reads(path=""):
        value = mine
        for key in path.split(":") if path else []:
            value = value[key]
        return value

    return reads


reads = of("mgmt01", example())


# --- slurm_conf ---


def slurm_conf(tmp_path, answer, *, refused=()):
    """The module with a tree whose scontrol gives an answer, and what it was asked."""
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "scontrol").touch(mode=0o755)
    asked = []

    def run(command, **options):
        folder = os.path.dirname(options["env"]["SLURM_CONF"])
        asked.append((command[1:], sorted(os.listdir(folder)), os.stat(folder).st_mode & 0o777))
        return answer

    salt = {
        "saltern.view": reads,
        "slurm_controller.refused": Mock(return_value=list(refused)),
        "cmd.run_all": run,
    }
    module = load("modules", "slurm_conf", __salt__=salt)
    module._TREE = str(tree)
    return module, asked


def test_the_parser_sees_all_files_aside_in_a_private_folder(tmp_path):
    module, asked = slurm_conf(tmp_path, said("n1"))
    assert module.problems() == []
    names = ["cgroup.conf", "gres.conf", "slurm.conf"]
    assert asked == [(["show", "hostnames", "n1"], names, 0o700)]


def test_the_parsers_refusal_names_the_plan(tmp_path):
    error = 'scontrol: error: ReturnToService value "x" is not a valid number'
    module, _ = slurm_conf(tmp_path, said(stderr=error, retcode=1))
    with pytest.raises(CommandExecutionError, match="slurm:parameters:ReturnToService"):
        module.require_sound()


def test_what_would_lose_jobs_is_refused_before_the_parser_is_asked(tmp_path):
    module, asked = slurm_conf(tmp_path, said("n1"), refused=["slurm:state_dir: no"])
    assert module.problems() == ["slurm:state_dir: no"]
    assert asked == []


def test_only_controllers_have_a_configuration():
    node = view.of(plan.resolve(SCHEMA, example()), "node01")
    module = load("modules", "slurm_conf", __salt__={"saltern.view": lambda path="": node})
    with pytest.raises(CommandExecutionError, match="node01 is no controller"):
        module.files()


# --- slurm_controller ---


class Controller:
    """A slurmctld with files, that takes them or not when it is told to."""

    def __init__(self, tmp_path, *, takes=True, running=True, status_word="Match"):
        self.conf, self.applied = tmp_path / "etc", tmp_path / "applied"
        for folder in (self.conf, self.applied):
            folder.mkdir()
        self.takes, self.running, self.word = takes, running, status_word
        self.started, self.told = 0.0, []
        salt = {
            "saltern.view": reads,
            "daemon.status": lambda name: self.status(),
            "daemon.start": self.start,
            "daemon.log_since": lambda name, since: "x fatal: it will not do" if not takes else "",
            "cmd.run_all": self.run,
            "node_reshape.hold": lambda changes: self.told.append(("hold", changes)),
            "node_reshape.release": lambda since: self.told.append("release"),
        }
        self.salt = salt
        self.module = load("modules", "slurm_controller", __salt__=salt)
        self.module._CONF, self.module._APPLIED = str(self.conf), str(self.applied)
        self.module._ANSWER_S, self.module._PAUSE_S = 0.05, 0.01

    def status(self):
        return {
            "active": self.running,
            "started": self.started,
            "properties": {"Result": "success"},
        }

    def start(self, name):
        self.told.append("restart")
        self._take()

    def run(self, command, **_):
        if command[1:] == ["reconfigure"]:
            self.told.append("reconfigure")
            self._take()
            return said(stderr="Unspecified error", retcode=0 if self.takes else 1)
        return said(f"HASH_VAL                = {self.word}\n")

    def _take(self):
        if self.takes:
            self.started, self.word = 4e9, "Match"

    def write(self, folder, text):
        (folder / "slurm.conf").write_text(text, encoding="utf-8")

    def read(self, folder):
        return (folder / "slurm.conf").read_text(encoding="utf-8")


def test_a_file_that_no_run_applied_is_seen(tmp_path):
    """The run was cut between the file and the daemon: nothing is remembered, all compared."""
    cluster = Controller(tmp_path, status_word="Different Ours=0x1 Slurmctld=0x2")
    cluster.write(cluster.applied, "KillWait=30\n")
    cluster.write(cluster.conf, "KillWait=45\n")
    found = cluster.module.pending()
    assert (found["state"], found["action"]) == ("differs", "RECONFIGURE")
    assert found["changes"] == ["slurm.conf: KillWait=30 -> 45"]


def test_files_that_it_read_when_it_started_need_nothing(tmp_path):
    cluster = Controller(tmp_path)
    cluster.write(cluster.conf, "KillWait=45\n")
    cluster.started = 4e9
    assert cluster.module.pending()["state"] == "unrecorded"
    cluster.module.record()
    assert cluster.module.pending()["state"] == "same"


def test_a_stopped_controller_has_nothing_pending(tmp_path):
    cluster = Controller(tmp_path, running=False)
    cluster.write(cluster.conf, "KillWait=45\n")
    assert cluster.module.pending()["state"] == "stopped"


@pytest.mark.parametrize(
    ("action", "told"), [("RECONFIGURE", ["reconfigure"]), ("RESTART", ["restart", "reconfigure"])]
)
def test_applying_reads_the_running_configuration_back(tmp_path, action, told):
    cluster = Controller(tmp_path, status_word="Different")
    cluster.write(cluster.conf, "KillWait=45\n")
    cluster.module.apply(action)
    assert cluster.told == [("hold", {}), *told, "release"]
    assert cluster.read(cluster.applied) == "KillWait=45\n"


def test_nodes_with_other_hardware_are_held_meanwhile(tmp_path):
    cluster = Controller(tmp_path, status_word="Different")
    cluster.write(cluster.applied, "NodeName=n1 CPUs=2\n")
    cluster.write(cluster.conf, "NodeName=n1 CPUs=4\n")
    cluster.module.apply("RECONFIGURE")
    assert cluster.told == [("hold", {"n1": "cpus 2 -> 4"}), "reconfigure", "release"]


def test_a_job_that_started_meanwhile_brings_the_former_files_back(tmp_path):
    cluster = Controller(tmp_path, status_word="Different")
    cluster.write(cluster.applied, "NodeName=n1 CPUs=2\n")
    cluster.write(cluster.conf, "NodeName=n1 CPUs=4\n")
    cluster.salt["node_reshape.hold"] = Mock(side_effect=CommandExecutionError("n1: jobs (7)"))
    with pytest.raises(CommandExecutionError, match=r"n1: jobs \(7\)\. The former files are back"):
        cluster.module.apply("RECONFIGURE")
    assert cluster.told == []
    assert cluster.read(cluster.conf) == "NodeName=n1 CPUs=2\n"


def test_status_zero_without_the_new_configuration_is_a_refusal(tmp_path):
    """PITFALL 23: the exit status is not the outcome; the log is quoted, the files go back."""
    cluster = Controller(tmp_path, takes=False, status_word="Different")
    cluster.write(cluster.applied, "KillWait=30\n")
    cluster.write(cluster.conf, "KillWait=bad\n")
    with pytest.raises(
        CommandExecutionError, match=r"fatal: it will not do.*former files are back"
    ):
        cluster.module.apply("RECONFIGURE")
    assert cluster.read(cluster.conf) == "KillWait=30\n"
    assert cluster.read(cluster.applied) == "KillWait=30\n"


def test_a_refusal_without_a_former_configuration_says_so(tmp_path):
    cluster = Controller(tmp_path, takes=False, status_word="Different")
    cluster.write(cluster.conf, "KillWait=bad\n")
    with pytest.raises(CommandExecutionError, match="no former configuration"):
        cluster.module.apply("RECONFIGURE")


def waits(cluster, words):
    """It is the second of two controllers, and its slurmctld alone says so."""
    two = example(**{"hosts:mgmt02": {"roles": ["controller"], "address": "10.0.0.2"}})
    cluster.salt["saltern.view"] = of("mgmt02", two)
    cluster.module._CLIENT = f"{cluster.conf}/client"
    plain = cluster.salt["cmd.run_all"]

    def run(command, env=None, **options):
        if env is None:
            return plain(command, **options)
        assert env == {"SLURM_CONF": f"{cluster.module._CLIENT}/slurm.conf"}
        return said(stderr=words, retcode=1 if words else 0)

    cluster.salt["cmd.run_all"] = run


STANDBY = "scontrol: error: Slurm backup controller in standby mode"


def test_a_controller_in_reserve_takes_a_change_by_a_restart_of_its_own(tmp_path):
    """A reconfigure goes to the one in charge; the other would keep its old file for ever."""
    cluster = Controller(tmp_path)
    waits(cluster, STANDBY)
    cluster.write(cluster.applied, "KillWait=30\n")
    cluster.write(cluster.conf, "KillWait=45\n")
    assert cluster.module.standby()
    assert cluster.module.pending()["action"] == "RESTART"
    cluster.module.apply("RESTART")
    assert cluster.told == [("hold", {}), "restart", "release"]
    assert cluster.read(cluster.applied) == "KillWait=45\n"
    only = (cluster.conf / "client" / "slurm.conf").read_text(encoding="utf-8")
    assert "SlurmctldHost=mgmt02\n" in only
    assert "SlurmctldHost=mgmt01" not in only


def test_one_in_charge_reconfigures_whatever_its_place(tmp_path):
    cluster = Controller(tmp_path)
    waits(cluster, "")
    cluster.write(cluster.applied, "KillWait=30\n")
    cluster.write(cluster.conf, "KillWait=45\n")
    assert not cluster.module.standby()
    cluster.module.apply(cluster.module.pending()["action"])
    assert "reconfigure" in cluster.told


# --- daemon ---


def daemon(shown, *, listening=""):
    asked = []

    def run(command, **_):
        asked.append(command)
        if command[0] == "ss":
            return said(listening)
        if command[:2] == ["systemctl", "show"]:
            return said("".join(f"{key}={value}\n" for key, value in shown.items()))
        return said()

    salt = {"cmd.run_all": run, "saltern.view": reads}
    return load("modules", "daemon", __salt__=salt), asked


def test_a_restart_that_would_kill_jobs_is_refused():
    shown = {"ActiveState": "active", "MainPID": os.getpid(), "KillMode": "control-group"}
    module, asked = daemon({**shown, "Delegate": "yes"})
    with pytest.raises(CommandExecutionError, match="KillMode: found control-group"):
        module.start("slurmd", 6818)
    assert ["systemctl", "restart", "slurmd"] not in asked
    assert ["systemctl", "daemon-reload"] in asked  # its drop-ins count as they are on disk


def test_a_taken_port_is_named_with_its_owner():
    line = 'LISTEN 0 5 0.0.0.0:6819 0.0.0.0:* users:(("python3",pid=29321,fd=3))'
    module, asked = daemon({"ActiveState": "inactive", "MainPID": 0}, listening=line)
    with pytest.raises(CommandExecutionError, match=r"6819: found python3 \(pid 29321\)"):
        module.start("slurmdbd", 6819)
    assert ["systemctl", "restart", "slurmdbd"] not in asked


def test_a_failed_condition_is_a_failure():
    module, _ = daemon({"ActiveState": "inactive", "MainPID": 0, "ConditionResult": "no"})
    with pytest.raises(CommandExecutionError, match="a condition of its unit failed"):
        module.start("slurmd")


def test_reasons_compare_with_what_runs(tmp_path):
    file = tmp_path / "unit"
    file.touch()
    module, _ = daemon({"ActiveState": "active", "MainPID": os.getpid()})
    assert module.restart_reasons("mariadb", [str(file)]) == [f"started before {file} changed"]
    for stamp in (1, 4e9):  # older than the process, or of a future that a clock's step left
        os.utime(file, (stamp, stamp))
        assert module.restart_reasons("mariadb", [str(file)]) == []
    assert "not /opt/slurm" in module.restart_reasons("slurmd")[0]


# --- slurm_cluster ---


def test_a_node_waits_until_the_running_configuration_holds_it():
    answers = iter(
        [
            said(stderr="Unable to contact", retcode=1),
            said('{"nodes": []}'),
            said((FIXTURES / "show_node.json").read_text(encoding="utf-8")),
        ]
    )
    asked = []

    def run(command, **options):
        asked.append(options["env"])
        return next(answers)

    module = load("modules", "slurm_cluster", __salt__={"cmd.run_all": run, "saltern.view": reads})
    module._PAUSE_S = 0
    module.await_node_known(60)
    assert asked == [{"SLURM_CONF_SERVER": "mgmt01:6817"}] * 3


def test_a_wait_for_the_controller_ends_and_names_it():
    run = Mock(return_value=said(json.dumps({"nodes": []})))
    module = load("modules", "slurm_cluster", __salt__={"cmd.run_all": run, "saltern.view": reads})
    with pytest.raises(CommandExecutionError, match="mgmt01: its running configuration has no"):
        module.await_node_known(0)


def test_accounting_that_does_not_answer_is_an_error_not_an_empty_list():
    run = Mock(return_value=said(stderr="sacctmgr: error: Connection refused"))
    module = load("modules", "slurm_cluster", __salt__={"cmd.run_all": run, "saltern.view": reads})
    with pytest.raises(CommandExecutionError, match="Connection refused"):
        module.clusters()


# --- slurm_database ---


PAIR = example(
    **{
        "hosts:db2": {"roles": ["database"], "address": "10.0.0.2"},
        "hosts:sql1": {"roles": ["mariadb"], "address": "10.0.0.3"},
    }
)


def database(counts, *, account=None, mine=reads):
    stdin = create_autospec(load("modules", "saltern").secret_stdin, side_effect=account)
    run = Mock(return_value=said(counts))
    platform = Mock(return_value={"mariadb": {"client": "mariadb"}})
    salt = {
        "cmd.run_all": run,
        "saltern.secret_stdin": stdin,
        "saltern.platform": platform,
        "saltern.view": mine,
    }
    return load("modules", "slurm_database", __salt__=salt), run, stdin


DIFFERS = CommandExecutionError(f"mariadb: ERROR 1644: {database_conf.ACCOUNT_DIFFERS} or …")


@pytest.mark.parametrize(
    ("counts", "account", "missing"),
    [
        ("1\t1", None, []),
        ("0\t0", None, ["database", "account localhost"]),
        ("1\t0", None, ["account localhost"]),
        ("1\t1", DIFFERS, ["account localhost"]),
    ],
    ids=["all there", "bare", "no rights", "another password"],
)
def test_what_slurmdbd_lacks(counts, account, missing):
    assert database(counts, account=account)[0].missing() == missing


def test_each_slurmdbd_has_an_account_and_nobody_else():
    """MariaDB on a host of its own; accounts are for addresses, never for any host."""
    module, run, stdin = database("1\t0", mine=of("sql1", PAIR))
    assert module.missing() == ["account 10.213.0.11", "account 10.0.0.2"]
    run.return_value, stdin.side_effect = said("1\t1"), None
    module.make(["account 10.0.0.2"])
    assert "'slurm'@'10.0.0.2' IDENTIFIED BY '<secret:slurmdbd_password>'" in str(stdin.mock_calls)
    assert "'%'" not in str(run.mock_calls) + str(stdin.mock_calls)


def test_mariadb_runs_on_its_own_host_or_the_first_slurmdbds():
    alone = {**PAIR, "hosts": {k: v for k, v in PAIR["hosts"].items() if k != "sql1"}}
    for raw, hosts in ((PAIR, {"sql1"}), (alone, {"mgmt01"})):
        runs_it = {
            host
            for host in ("mgmt01", "db2", "sql1", "node01")
            if host in raw["hosts"] or host == "node01"
            if database("", mine=of(host, raw))[0].here()
        }
        assert runs_it == hosts


@pytest.mark.parametrize(
    ("conf", "active", "refused"),
    [
        ("StorageHost=localhost\n", True, True),
        ("StorageHost=localhost\n", False, False),
        ("StorageHost=10.0.0.3\n", True, False),
        (None, True, False),
    ],
    ids=["moves", "moves while it is stopped", "stays", "new"],
)
def test_accounting_does_not_start_empty_elsewhere(tmp_path, conf, active, refused):
    module, *_ = database("", mine=of("mgmt01", PAIR))
    module.__salt__["daemon.status"] = lambda name: {"active": active}
    module._DBD_CONF = str(tmp_path / "slurmdbd.conf")
    if conf:
        (tmp_path / "slurmdbd.conf").write_text(conf, encoding="utf-8")
    problems = module.moves()
    assert bool(problems) == refused
    assert not refused or ("localhost" in problems[0] and "10.0.0.3" in problems[0])


def test_an_unreachable_server_is_an_error():
    module, run, _ = database("")
    run.return_value = said(stderr="Can't connect through socket", retcode=1)
    with pytest.raises(CommandExecutionError, match="does not answer root on its socket"):
        module.missing()


def test_the_password_is_never_in_a_command_or_a_text_of_ours():
    module, run, stdin = database("0\t0")
    module.make(["database", "account localhost"])
    texts = [str(call) for call in [*run.mock_calls, *stdin.mock_calls]]
    assert any("<secret:slurmdbd_password>" in text for text in texts)
    assert all("password" not in " ".join(call.args[0]) for call in run.mock_calls)


def test_mariadb_has_schedmds_values_and_stays_at_home():
    text = database_conf.text(VIEW)
    pool = VIEW["accounting"]["buffer_pool_mb"]
    assert f"innodb_buffer_pool_size = {pool}M" in text
    assert f"innodb_log_file_size = {max(pool // 4, 48)}M" in text
    assert "innodb_lock_wait_timeout = 900" in text
    assert "loose-innodb_snapshot_isolation = OFF" in text
    assert "bind-address = 127.0.0.1" in text
    apart = database_conf.text(of("sql1", PAIR)())
    assert "bind-address = 10.0.0.3" in apart
