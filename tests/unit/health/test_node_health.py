"""The checker: LBNL's syntax, strict numbers, no pass without a look, no check held up by another."""

import json
import os
import subprocess
import sys

import pytest
from checker_file import CHECKER
from support import ROOT

MATCHES = [
    line.split("\t")[:3]
    for line in (ROOT / "tests/fixtures/nhc-match.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("host", "match", "word"), MATCHES)
def test_host_matches_are_lbnls(health, host, match, word):
    """PITFALL 32, against what LBNL NHC 1.4.3 itself said (C51)."""
    assert health.matches(host, match) == (word == "match")


def test_nothing_is_read_after_a_range_that_lbnl_nhc_does_not_know(health):
    assert health.matches("node007", "{node007,node[001-003,007]}")
    assert not health.matches("node007", "{node[001-003,007],node007}")


def lines(health, text, host="node01"):
    variables = {"HOSTNAME": host}
    checks = health.configuration(text, host, variables)
    return [(check.name, check.arguments) for check in checks], variables


CONF = r"""
# a comment
   # another
  * || check_fs_mount_rw -t "nfs*" -f '/home dir'
  node0[1-3] || check_hw_eth eth0
  !node01 || check_hw_eth never
  {node[01-03],node07} || check_hw_eth "$DEVICE"
  /^node/ || check_file_contents /etc/x '/^a b$/' \
      '!/c/'
  * || DEVICE=ib0
  * || export MAX_SYS_UID="999"
  node01 || check_hw_eth ${DEVICE} # a comment
  * ||
  || check_hw_eth never
"""


def test_the_configuration_is_read_as_lbnl_nhc_reads_it(health):
    found, variables = lines(health, CONF)
    assert found == [
        ("check_fs_mount_rw", ["-t", "nfs*", "-f", "/home dir"]),
        ("check_hw_eth", ["eth0"]),
        ("check_hw_eth", [""]),
        ("check_file_contents", ["/etc/x", "/^a b$/", "!/c/"]),
        ("check_hw_eth", ["ib0"]),
    ]
    assert variables["MAX_SYS_UID"] == "999"


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="bash is what is compared with")
@pytest.mark.parametrize(
    "line",
    [r"a\.b", r"a\\.b c", r"x\ y", "one \\\ntwo", r"'\$pbs'", "tab\tend", r"\\\\", r"a\b\\c\d"],
)
def test_lines_are_what_bash_reads(health, line):
    script = 'while read LINE; do printf "%s\\n" "$LINE"; done'
    said = subprocess.run(
        ["/bin/bash", "-c", script], input=f"{line}\n", capture_output=True, text=True, check=True
    ).stdout
    assert [text for _, text in health._lines(f"{line}\n") if text] == said.splitlines()


REFUSED = [
    ("check_hw_ethernet eth0", "no check that this program knows"),
    ("check_fs_free / 2.5%", "cannot run: least free space is '2.5'; expected an integer"),
    ("check_fs_free / 1.5G", "expected an integer"),
    ("check_ps_loadavg 121.60", "expected an integer"),
    ("check_hw_physmem 1 x", "expected an integer"),
    ("check_hw_cpuinfo 1 2 2.0", "expected an integer"),
    ("check_cmd_status -r '' true", "expected an integer"),
    ("check_fs_free /", "expected mount point"),
    ("check_hw_eth", "expected a device"),
    ("check_ps_service -S sshd", "-S: not an option here (this program only looks)"),
    ("check_fs_mount_rw -e 'mount /home' -f /home", "this program only looks"),
    ("check_ps_unauth_users kill", "this program only looks"),
    ("check_hw_eth $(hostname)", "runs a program inside the line"),
    ("check_hw_eth `hostname`", "runs a program inside the line"),
    ("check_hw_eth lo && check_hw_eth eth0", "the shell's &"),
    ("check_hw_eth lo; reboot", "the shell's ;"),
    ("check_hw_eth 'lo", "is not closed"),
    ("check_file_contents /etc/passwd '/[/'", "no regular expression"),
    ("check_cmd_output -r 0 /no/such/program", "No such file"),
    ("check_cmd_output -t 1 sleep 60", "did not end within 1 s"),
]


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_what_cannot_run_fails_with_its_cause(fake, line, words):
    """PITFALL 31: neither a pass nor a claim about the node."""
    fake.write("/etc/passwd", "root:x:0:0\n").write("/proc/meminfo", "MemTotal: 5 kB\n")
    fake.write("/proc/loadavg", "0 0 0 1/1 1\n")
    fake.write("/sys/devices/system/cpu/online", "0-1")
    for cpu in range(2):
        topology(fake, cpu, "0-1", str(cpu))
    fake.write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/vda rw\n")
    finding = fake.one(line)
    assert finding.startswith("cannot run: ")
    assert words in finding


def test_a_line_without_bars_is_told_with_its_number(health):
    (check,) = health.configuration("\ncheck_hw_eth eth0\n", "node01", {})
    assert check.trouble == "line 2 has no ||"


MOUNTS = (
    "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "2 1 0:50 / /home rw,relatime - nfs4 store01:/home rw,hard,vers=4.2\n"
    "3 1 0:51 / /data ro,relatime - nfs4 store01:/data rw,hard\n"
    "4 1 0:52 / /with\\040blank rw - tmpfs tmpfs rw\n"
)
MOUNT_CASES = [
    ("check_fs_mount_rw -f /home", ""),
    ("check_fs_mount_rw -t nfs4 -s store01:/home -o '*hard*' -f /home", ""),
    ("check_fs_mount_rw -t '/^nfs/' -f /home", ""),
    ("check_fs_mount_rw /home store01:/home nfs4", ""),
    ("check_fs_mount -f /home /data", ""),
    ("check_fs_mount_ro -f /data", ""),
    ("check_fs_mount_rw -f '/with blank'", ""),
    ("check_fs_mount_rw -f /scratch", "/scratch is not mounted"),
    ("check_fs_mount_rw -f /data", "/data is mounted ro; expected rw"),
    ("check_fs_mount_ro -f /home", "/home is mounted rw; expected ro"),
    ("check_fs_mount_rw -t lustre -f /home", "/home is mounted of type nfs4; expected lustre"),
    ("check_fs_mount -s 'other:*' -f /home", "from store01:/home; expected other:*"),
    ("check_fs_mount -o '!*hard*' -f /home", "expected !*hard*"),
    ("check_fs_mount -f /home /scratch", "/scratch is not mounted"),
]


@pytest.mark.parametrize(("line", "finding"), MOUNT_CASES)
def test_mounts(fake, line, finding):
    fake.write("/proc/self/mountinfo", MOUNTS)
    found = fake.one(line)
    assert finding in found if finding else found == ""


def test_free_space_and_inodes(fake):
    fake.write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/vda rw\n")
    good = ["check_fs_free / 1k", "check_fs_free / 0%", "check_fs_used / 101%"]
    good += ["check_fs_size / 1k", "check_fs_ifree / 0", "check_fs_inodes / 0"]
    assert fake.look(*good) == [""] * 6
    bad = fake.look("check_fs_free / 900P", "check_fs_free / 100%", "check_fs_used / 0%")
    assert ["free on /" in bad[0], "% free on /" in bad[1], "% used on /" in bad[2]] == [True] * 3
    assert "not mounted" in fake.one("check_fs_free /scratch 1%")
    assert "at least" in fake.one("check_fs_ifree / 900P")
    assert "at most" in fake.one("check_fs_size / '' 1k")


def topology(fake, cpu, package, core):
    base = f"/sys/devices/system/cpu/cpu{cpu}/topology"
    fake.write(f"{base}/physical_package_id", "0\n")
    fake.write(f"{base}/package_cpus_list", f"{package}\n")
    fake.write(f"{base}/core_cpus_list", f"{core}\n")


def test_cpus_from_sys(fake):
    """Two sockets of 64 cores with two threads; 256 threads."""
    fake.write("/sys/devices/system/cpu/online", "0-255\n")
    for cpu in range(256):
        socket = cpu % 128 // 64
        package = f"{socket * 64}-{socket * 64 + 63},{socket * 64 + 128}-{socket * 64 + 191}"
        topology(fake, cpu, package, f"{cpu % 128},{cpu % 128 + 128}")
    assert fake.one("check_hw_cpuinfo 2 128 256") == ""
    assert fake.one("check_hw_cpuinfo 2 128 128") == "256 threads; expected 128"
    assert fake.one("check_hw_cpuinfo 4 128 256") == "2 sockets; expected 4"
    assert fake.one("check_hw_cpuinfo '' 127") == "128 cores; expected 127"


def test_cpus_without_a_topology_in_sys(fake):
    block = "processor\t: {}\nphysical id\t: {}\ncore id\t: {}\n\n"
    text = "".join(block.format(cpu, cpu // 2, cpu % 2) for cpu in range(4))
    fake.write("/proc/cpuinfo", text)
    assert fake.one("check_hw_cpuinfo 2 4 4") == ""
    assert fake.one("check_hw_cpuinfo 1 4 4") == "2 sockets; expected 1"


MEMORY = "MemTotal: 1000000 kB\nMemFree: 1000 kB\nMemAvailable: 500000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
MEMORY_CASES = [
    ("check_hw_physmem 1000000 1000000", ""),
    ("check_hw_physmem 900MB 1GB", ""),
    ("check_hw_physmem 1010000 1010000 1%", ""),
    ("check_hw_physmem 1010000 1010000 10MB", ""),
    ("check_hw_physmem_free 500000", ""),
    ("check_hw_swap 0 0", ""),
    ("check_hw_mem 1000000 1000000", ""),
    ("check_hw_physmem 1020000 1020000", "physical memory is 976 MiB; expected at least 996 MiB"),
    ("check_hw_physmem 1 2", "expected at most 2 KiB"),
    ("check_hw_physmem_free 500001", "free physical memory"),
    ("check_hw_swap 1G 2G", "swap is 0 KiB; expected at least 1024 MiB"),
]


@pytest.mark.parametrize(("line", "finding"), MEMORY_CASES)
def test_memory(fake, line, finding):
    fake.write("/proc/meminfo", MEMORY)
    found = fake.one(line)
    assert finding in found if finding else found == ""


def test_nics_and_ports(fake):
    net, port = "/sys/class/net/eth0", "/sys/class/infiniband/mlx5_0/ports/1"
    fake.write(f"{net}/operstate", "up\n").write(f"{net}/speed", "25000\n")
    fake.write(f"{port}/state", "4: ACTIVE\n").write(f"{port}/phys_state", "5: LinkUp\n")
    fake.write(f"{port}/rate", "400 Gb/sec (4X NDR)\n")
    good = ["check_hw_eth eth0", "check_eth_speed eth0 25000", "check_hw_ib 400"]
    assert fake.look(*good, "check_hw_ib 400 mlx5_0:1") == [""] * 4
    assert fake.one("check_hw_eth eth1") == "no device eth1"
    assert fake.one("check_eth_speed eth0 100000") == "eth0 has 25000 Mbit/s; expected 100000"
    assert "400 Gb/sec" in fake.one("check_hw_ib 200")
    assert "no port" in fake.one("check_hw_ib 400 mlx5_1")
    fake.write(f"{net}/operstate", "down\n").write(f"{port}/state", "1: DOWN\n")
    assert fake.one("check_eth_speed eth0 1") == "eth0 is down; expected up"
    assert "1: DOWN" in fake.one("check_hw_ib 400")


def process(fake, pid, words, parent=1, name=None):
    name = name or words.split()[0].rsplit("/")[-1][:15]
    fake.write(f"/proc/{pid}/stat", f"{pid} ({name}) S {parent} 1 1\n")
    fake.write(f"/proc/{pid}/cmdline", words.replace(" ", "\0") + "\0")


def test_services(fake):
    process(fake, 10, "/usr/sbin/munged --num-threads=10")
    process(fake, 11, "sshd: listener")
    process(fake, 12, "/usr/bin/python3 /opt/agent.py")
    me = os.geteuid()
    good = ["check_ps_service munged", "check_ps_service -d sshd ssh", "check_ps_daemon munged"]
    good += [f"check_ps_service -u {me} munged", "check_ps_service -f -m '*agent.py' agent"]
    assert fake.look(*good, "check_ps_blacklist sshd2") == [""] * 6
    assert fake.one("check_ps_service chronyd") == "chronyd does not run"
    assert fake.one(f"check_ps_service -u !{me} munged") == f"munged does not run as !{me}"
    assert "runs (process 10" in fake.one("check_ps_blacklist munged")
    assert "no user nosuchuser" in fake.one("check_ps_service -u nosuchuser munged")


def test_stray_processes_are_those_that_no_job_accounts_for(fake):
    me = os.geteuid()
    fake.variables["NHC_AUTH_USERS"] = "nobody"
    fake.variables["MAX_SYS_UID"] = str(me)
    process(fake, 20, "sleep 100")
    assert fake.look("check_ps_unauth_users", "check_ps_userproc_lineage") == ["", ""]
    if me == 0:
        os.chown(fake.root / "proc/20", 4242, 4242)
    else:
        pytest.skip("only root can make another's process")
    for check in ("check_ps_unauth_users", "check_ps_userproc_lineage die"):
        assert fake.one(check) == "1 stray processes: sleep (20, user 4242)"
    assert fake.one("check_ps_unauth_users log") == ""
    process(fake, 30, "slurmstepd: [7.batch]", name="slurmstepd")
    process(fake, 31, "bash job.sh", parent=30)
    os.chown(fake.root / "proc/31", 4242, 4242)
    assert fake.one("check_ps_unauth_users") == "", "the user has a job here"
    assert "sleep (20" in fake.one("check_ps_userproc_lineage"), "but this is not of the job"


def test_files(fake):
    fake.write("/etc/conf", "server master\nport 7\n")
    good = ["check_file_test -f -r -s /etc/conf", "check_file_test -d /etc"]
    good += ["check_file_contents /etc/conf '/^port [0-9]+$/' '!/slave/'", "check_file_test /etc"]
    good += [f"check_file_stat -u {os.geteuid()} /etc/conf", "check_file_stat -n 3600 /etc/conf"]
    assert fake.look(*good) == [""] * 6
    assert "No such file" in fake.one("check_file_test -e /etc/none")
    assert "does not pass test -d" in fake.one("check_file_test -d /etc/conf")
    assert "no line" in fake.one("check_file_contents /etc/conf slave")
    assert "has a line" in fake.one("check_file_contents /etc/conf '!/master/'")
    assert "does not have -u 4242" in fake.one("check_file_stat -u 4242 /etc/conf")
    assert "does not have -m 0777" in fake.one("check_file_stat -m 0777 /etc/conf")


def test_commands(fake):
    good = ["check_cmd_output -r 0 -m '/one/' -m '!/two/' echo one", "check_cmd_status -r 1 false"]
    assert fake.look(*good, "check_cmd_output -e 'echo a b' -m 'a b'") == ["", "", ""]
    assert fake.one("check_cmd_status -r 0 false") == "false ended with 1; expected 0"
    assert "no line that matches two" in fake.one("check_cmd_output -m two echo one")


CLOCK = "0AD5030B,10.0.0.1,11,1796131235.9,{},-0.0,0.0,-0.0,-0.0,0.0,0.0,0.0,64.2,{}"


@pytest.mark.parametrize(
    ("offset", "leap", "finding"),
    [
        ("0.000010", "Normal", ""),
        ("-0.9", "Normal", "the clock is 900 ms off; expected at most 500 ms"),
        ("0.0", "Not synchronised", "the clock is not synchronised"),
    ],
)
def test_the_clock_simulated(fake, offset, leap, finding):
    fake.program("chronyc", f"echo {CLOCK.format(offset, leap)!r}")
    assert fake.one("check_clock_offset 500") == finding


@pytest.mark.parametrize(("uptime", "finding"), [("110", ""), ("1000", "not synchronised")])
def test_a_chronyd_that_just_began_may_look_for_its_sources_simulated(fake, uptime, finding):
    fake.program("chronyc", f"echo {CLOCK.format('0.0', 'Not synchronised')!r}")
    fake.write("/run/chrony/chronyd.pid", "9\n").write("/proc/uptime", f"{uptime} 1\n")
    ticks = 100 * os.sysconf("SC_CLK_TCK")
    fields = " ".join(["S", *["0"] * 18, str(ticks), "0"])
    fake.write("/proc/9/stat", f"9 (chronyd) {fields}\n")
    found = fake.one("check_clock_offset 500")
    assert finding in found if finding else found == ""


def test_a_clock_that_nobody_can_tell_is_no_clock_that_is_wrong(fake):
    fake.program("chronyc", "echo '506 Cannot talk to daemon'; exit 1")
    assert fake.one("check_clock_offset 500") == "cannot run: chronyc: 506 Cannot talk to daemon"


# No GPU here: nvidia-smi and journalctl are simulated, in the formats of NVIDIA's manuals.
SMI = """case "$1" in
--query-gpu=index,driver_version) printf '0, 550.54.15\\n1, {driver}\\n' ;;
--query-gpu=index,retired_pages*) printf '0, No, 0\\n1, {pages}, {errors}\\n' ;;
--query-gpu=index,pcie*) printf '0, 16\\n1, {width}\\n' ;;
--query-remapped-rows*) printf 'GPU-a, 0, 0\\nGPU-b, {pending}, {failure}\\n' ;;
nvlink) printf 'GPU 0: H100\\n\\t Link 0: 26.562 GB/s\\nGPU 1: H100\\n\\t Link 0: {link}\\n' ;;
-L) echo 'GPU 0: H100' ;;
*) echo "Field \\"$1\\" is not a valid field to query."; exit 2 ;;
esac"""
WELL = {
    "driver": "550.54.15",
    "pages": "[N/A]",
    "errors": "0",
    "width": "16",
    "pending": "0",
    "failure": "0",
    "link": "26.562 GB/s",
}
GPU_CHECKS = [
    "check_gpu_count 2",
    "check_gpu_driver 550.54.15",
    "check_gpu_memory",
    "check_gpu_nvlink 1",
    "check_gpu_pcie 16",
    "check_nvsmi_healthmon",
]
GPU_CASES = [
    ({"driver": "550.90.07"}, "check_gpu_driver 550.54.15", "driver 550.54.15, 550.90.07"),
    ({"pages": "Yes"}, "check_gpu_memory", "GPU 1: retired pages wait for a reset"),
    ({"errors": "3"}, "check_gpu_memory", "GPU 1: 3 uncorrected ECC errors"),
    ({"pending": "1"}, "check_gpu_memory", "GPU-b: row remapping waits for a reset"),
    ({"failure": "1"}, "check_gpu_memory", "GPU-b: row remapping failed"),
    ({"width": "8"}, "check_gpu_pcie 16", "GPU 1 has 8 PCIe lanes; expected 16"),
    ({"width": "[N/A]"}, "check_gpu_pcie 16", "cannot run: pcie.link.width.current is '[N/A]'"),
    ({"link": "<inactive>"}, "check_gpu_nvlink 1", "active links GPU 1: 0; expected 1"),
    ({}, "check_gpu_count 8", "2 GPUs; expected 8"),
]


def gpus(fake, **changes):
    fake.program("nvidia-smi", SMI.format(**{**WELL, **changes}))
    line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n"
    fake.write("/proc/driver/nvidia/version", line)
    return fake


def test_gpus_that_are_well_simulated(fake):
    assert gpus(fake).look(*GPU_CHECKS) == [""] * len(GPU_CHECKS)


@pytest.mark.parametrize(("changes", "line", "words"), GPU_CASES)
def test_gpus_simulated(fake, changes, line, words):
    assert words in gpus(fake, **changes).one(line)


def test_a_module_of_another_driver_simulated(fake):
    gpus(fake).write("/proc/driver/nvidia/version", "NVRM version: x  535.1.2  y\n")
    assert "535.1.2" in fake.one("check_gpu_driver 550.54.15")


def test_a_field_that_nvidia_smi_does_not_know_is_no_pass_simulated(fake):
    fake.program("nvidia-smi", 'echo "Field \\"x\\" is not a valid field to query."; exit 2')
    for finding in fake.look(*GPU_CHECKS):
        assert finding.startswith("cannot run: nvidia-smi ended with 2: Field")


@pytest.mark.parametrize(
    ("xid", "args", "fails"),
    [(94, "", False), (79, "", True), (48, "", True), (13, "", False), (94, "94", True)],
)
def test_xids_since_boot_simulated(fake, xid, args, fails):
    line = f"NVRM: Xid (PCI:0000:1b:00): {xid}, pid=1, name=x, GPU has fallen"
    fake.program("journalctl", f"echo '{line}'")
    finding = fake.one(f"check_gpu_xid {args}")
    assert finding == (f"Xid {xid} on PCI:0000:1b:00 since boot" if fails else "")


def test_no_xid_and_no_journal_simulated(fake):
    fake.program("journalctl", "echo '-- No entries --'; exit 1")
    assert fake.one("check_gpu_xid") == ""
    fake.program("journalctl", "echo 'Compiled without pattern matching support'; exit 1")
    assert fake.one("check_gpu_xid").startswith("cannot run: journalctl ended with 1: Compiled")


# --- none holds another up ---


def test_checks_that_hang_delay_no_other(fake):
    """Six that wait for ever: one after the other they would outlast the limit of the run, and the
    last ones would not have been made."""
    for number in range(6):
        os.mkfifo(fake.root / f"pipe{number}")
    fake.write("/etc/conf", "x\n").write("/proc/meminfo", MEMORY)
    slow = [f"check_file_contents /pipe{number} x" for number in range(6)]
    quick = ["check_file_test -r /etc/conf", "check_hw_physmem 1 1T", "check_cmd_status -r 0 true"]
    found = fake.look(*slow, *quick, budget=3, limit=6)
    assert found[6:] == ["", "", ""]
    assert all("hung: no answer within 3" in finding for finding in found[:6])


def test_what_hangs_says_where(fake):
    os.mkfifo(fake.root / "pipe")
    finding = fake.one("check_file_contents /pipe x", budget=1)
    assert finding.startswith("hung: no answer within 1.0 s (state ")


def test_checks_that_share_a_look_name_the_one_that_hung(fake):
    fake.program("nvidia-smi", "sleep 60")
    found = fake.look("check_gpu_count 2", "check_gpu_memory", budget=1)
    assert found[0].startswith("hung: no answer within")
    assert found[1] == "cannot run: check_gpu_count hung before it"


def test_what_an_earlier_run_left_behind_is_not_begun_again(fake, health):
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        try:
            born = health._born(sleeper.pid)
            fake.write("/hung", f"{sleeper.pid} {born} 1796130060 check_file_test(/etc)\n")
            fake.write("/etc/conf", "x\n")
            finding = fake.one("check_file_test -d /etc")
        finally:
            sleeper.kill()
    since = "hung: an earlier run of it has not ended since 2026-12-01T13:01Z (state "
    assert finding.startswith(since)
    assert fake.one("check_file_test -d /etc") == ""
    assert not (fake.root / "hung").exists()


def test_a_check_that_dies_is_no_pass(fake, health, monkeypatch):
    def dies(node, options, operands):
        os._exit(1)

    monkeypatch.setitem(health.CHECKS, "check_net_ping", health.Spec(dies))
    fake.write("/etc/conf", "x\n")
    lines = ["check_net_ping a", "check_file_test /etc", "check_net_ping b", "check_net_ping c"]
    found = fake.look(*lines, "check_file_test /etc/conf")
    dead = "cannot run: its process died"
    assert found == [dead, "", dead, dead, ""]


def test_a_check_with_a_fault_of_ours_is_no_pass(fake, health, monkeypatch):
    def fault(node, options, operands):
        raise KeyError("x")

    monkeypatch.setitem(health.CHECKS, "check_hw_eth", health.Spec(fault, where="here"))
    assert fake.one("check_hw_eth lo") == "cannot run: KeyError: 'x'"


def test_no_process_can_be_made(fake, health, monkeypatch):
    def refuses():
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(health.os, "fork", refuses)
    fake.write("/proc/meminfo", MEMORY)
    found = fake.look("check_file_test /etc", "check_hw_physmem 1 1T")
    assert found == ["cannot run: fork: Resource temporarily unavailable", ""]


# --- the program ---


def run(*words):
    return subprocess.run(
        [sys.executable, "-I", str(CHECKER), *words], capture_output=True, text=True, check=False
    )


def test_the_table_and_the_status(tmp_path):
    conf = tmp_path / "nhc.conf"
    conf.write_text("* || check_hw_eth lo\n* || check_hw_eth nosuch0\n")
    said = run("--conf", str(conf))
    assert said.returncode == 1
    assert "check_hw_eth  nosuch0   FAILED" in said.stdout
    assert said.stdout.endswith("2 checks, 1 failed\n")
    conf.write_text("* || check_hw_eth lo\n")
    assert run("--conf", str(conf)).returncode == 0


def test_json_for_programs():
    said = run("--json", "--only", "check_hw_eth", "nosuch0")
    answer = json.loads(said.stdout)
    assert answer["passed"] is False
    (check,) = answer["checks"]
    assert (check["cause"], check["finding"]) == ("check_hw_eth(nosuch0)", "no device nosuch0")


def test_no_configuration_is_no_pass(tmp_path):
    said = run("--conf", str(tmp_path / "none"))
    assert (said.returncode, said.stdout) == (2, "")
    assert "No such file" in said.stderr


def test_a_wrong_word_is_refused():
    assert run("--jsn").returncode == 2
    assert run("--timeout", "x").returncode == 2


def test_it_names_its_checks(health):
    names = run("--list").stdout.split()
    assert "check_fs_mount_rw" in names
    assert names == sorted(health.CHECKS)


def test_it_needs_nothing_but_pythons_own():
    text = CHECKER.read_text("utf-8")
    imported = {
        line.split()[1].split(".")[0]
        for line in text.splitlines()
        if line.strip().startswith(("import ", "from "))
    }
    assert imported <= sys.stdlib_module_names
    assert "salt" not in imported
