"""The event bus becomes progress, answers become results."""

import json

from saltern_lab import events
from saltern_lab.events import Progress


def state(name, sls="p1_foundation.munge", result=True, changes=None, **more):
    return {
        "__id__": name,
        "__sls__": sls,
        "result": result,
        "changes": changes or {},
        "duration": 500.0,
        **more,
    }


def event(host, ret, number=0, total=4):
    tag = f"salt/job/20261201101531416219/prog/{host}/{number}"
    return f"{tag}\t{json.dumps({'id': host, 'data': {'ret': ret, 'len': total}})}\n"


def fed(*lines):
    progress = Progress(["node01"])
    for line in lines:
        parsed = events.parse_line(line)
        if parsed:
            progress.feed(*parsed)
    return progress


def test_states_count_up_by_phase():
    host = fed(
        event("node01", state("plan: view", "p0_plan")),
        event("node01", state("munge: key", changes={"diff": "x"}), 1),
        event("node01", state("munge: service", result=False), 2),
    ).hosts["node01"]
    assert (host.done, host.total, host.changed, host.failed) == (3, 4, 1, 1)
    assert host.seconds == {"p0_plan": 0.5, "p1_foundation": 1.0}
    assert (host.phase, host.last) == ("p1_foundation", "munge: service")


def test_host_that_nobody_named_appears():
    assert fed(event("node07", state("a: b"))).hosts["node07"].done == 1


def test_return_of_another_function_does_not_finish_a_host():
    tag = "salt/job/20261201101531416219/ret/node01"
    host = fed(f"{tag}\t{json.dumps({'fun': 'test.ping', 'id': 'node01'})}").hosts["node01"]
    assert not host.finished
    host = fed(f"{tag}\t{json.dumps({'fun': 'state.highstate', 'id': 'node01'})}").hosts["node01"]
    assert host.finished


def test_a_gate_ends_a_phase_and_tells_its_time():
    job = {"fun": "state.highstate", "_stamp": "2026-12-01T10:00:00"}
    new = f"salt/job/20261201101531416219/new\t{json.dumps(job)}"
    said = {"id": "node01", "data": {"phase": "p0_plan", "open": True}}
    gate = f"saltern/phase\t{json.dumps({**said, '_stamp': '2026-12-01T10:00:05'})}"
    host = fed(new, gate).hosts["node01"]
    assert (host.phase, host.last, host.seconds) == ("p0_plan", "gate open", {"p0_plan": 5.0})


def test_build_progress_is_shown_until_the_next_state():
    build = f"saltern/build/progress\t{json.dumps({'id': 'node01', 'data': {'text': 'make 40 %'}})}"
    assert fed(build).hosts["node01"].note == "building: make 40 %"
    assert fed(build, event("node01", state("a: b"))).hosts["node01"].note == ""


def test_noise_on_the_bus_is_skipped():
    progress = fed("[WARNING ] something\n", "tag\tnot json\n", "salt/auth\t[]\n", "\n")
    assert progress.hosts["node01"].done == 0


def test_answers_are_one_json_document_after_the_other():
    text = 'warning\n{\n "a": {"x": 1}\n}\n{"b": false}\nERROR: Minions returned with …\n'
    assert events.json_documents(text) == {"a": {"x": 1}, "b": False}
    assert events.json_documents("nothing") == {}


def test_result_names_causes_and_counts_what_waits():
    answer = {
        "3": state(
            "munge: running",
            result=False,
            __run_num__=3,
            __state_ran__=False,
            comment="requisite failed",
        ),
        "1": state("munge: key", result=False, __run_num__=1, comment="no secret"),
        "0": state("plan: view", "p0_plan", changes={"a": 1}, __run_num__=0),
    }
    result = events.result_of(answer)
    assert result.problems == ["munge: key (p1_foundation.munge): no secret"]
    assert (result.waiting, result.changed, result.states) == (1, ["plan: view"], 3)


def test_refused_and_missing_hosts_are_problems():
    assert events.result_of(["Pillar failed", "Pillar failed"]).problems == ["Pillar failed"]
    assert events.result_of("Minion did not return").problems == ["Minion did not return"]
    assert events.result_of(None).problems == ["it did not answer"]
    assert events.result_of({"0": state("a: b")}).problems == []


def test_failure_is_told_once_and_what_only_waits_is_not():
    progress = fed(
        event("node01", state("munge: key", result=False, comment="no secret")),
        event("node01", state("munge: service", result=False, __state_ran__=False), 1),
    )
    assert progress.failures == ["node01: munge: key (p1_foundation.munge): no secret"]
    assert progress.hosts["node01"].failed == 2


def test_own_job_is_the_first_highstate():
    new = "salt/job/20261201101531416219/new\t" + json.dumps({"fun": "state.highstate"})
    other = "salt/job/20261201101531416220/new\t" + json.dumps({"fun": "test.ping"})
    assert fed(other).jid is None
    assert fed(other, new).jid == "20261201101531416219"
    assert fed(event("node01", state("a: b"))).jid == "20261201101531416219"
