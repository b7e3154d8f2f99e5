"""PITFALLS 26 and 27: reasons hold anything, and only the last bracket is the author's."""

import pytest
from saltern import drain_board, drain_reasons, slurm_answers
from saltern.drain_reasons import FLAPPING, HELD, Cause
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "slurm-24.11.5"
NODES = {
    node.name: node for node in drain_board.nodes((FIXTURES / "show_nodes.txt").read_text("utf-8"))
}
SHOWN = {
    "gpu001": ("IDLE+DRAIN", "memory swap, J. [slot 3]", "root"),
    "gpu002": ("IDLE+DRAIN", 'NHC: a|b "quoted" = State=IDLE [root@2020-01-01T00:00:00]', "root"),
    "gpu003": ("IDLE+DRAIN", "two\nlines", "root"),
    "gpu004": ("IDLE+DRAIN", "größe 漢字", "root"),
    "gpu005": ("IDLE+DRAIN", "fromconf", ""),
    "gpu011": ("IDLE", "", ""),
    "gpu014": ("IDLE+DRAIN", "Kill task failed", "root"),
    "gpu015": ("IDLE+DRAIN+MAINTENANCE+RESERVED", "inmaint", "root"),
}


def test_every_node_is_there_once():
    assert sorted(NODES) == sorted(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_reason_is_read_whole_whatever_it_holds(name):
    node = NODES[name]
    assert (node.state.text, node.reason, node.user) == SHOWN[name]


def test_whose_a_drain_is():
    owners = {name: node.owner for name, node in NODES.items()}
    assert owners.pop("gpu011") == ""
    assert owners.pop("gpu014") == "slurm"
    assert set(owners.values()) == {"person"}


def test_a_drain_without_a_reason_is_a_persons():
    assert drain_reasons.owner("", "", drained=True) == "person"


def test_json_and_an_answer_that_is_none():
    nodes = drain_board.nodes((FIXTURES / "show_node.json").read_text("utf-8"))
    assert [(node.name, node.state.text, node.owner) for node in nodes] == [
        ("node01", "ALLOCATED", "")
    ]
    with pytest.raises(slurm_answers.Unreadable, match="Unable to contact"):
        drain_board.nodes("slurm_load_node error: Unable to contact slurm controller")


MOMENT = 1796130060.0  # 2026-12-01T13:01:00Z
CAUSES = [
    [Cause("join", "waiting for its highstate", MOMENT)],
    [Cause("check_fs_mount_rw(/home)", "not mounted", MOMENT)],
    [Cause("join", "x", MOMENT), Cause("check_hw_eth(eth0)", "no such device: eth0", MOMENT)],
    [Cause("check_fs_free(/)", "1% free; expected 3%", MOMENT, FLAPPING)],
    [Cause("check_cmd_output(a:b)", "größe = [root@2020-01-01T00:00:00] 漢字", MOMENT, HELD)],
]


@pytest.mark.parametrize("causes", CAUSES, ids=lambda causes: causes[0].name)
def test_our_reason_is_read_back_as_it_was_written(causes):
    assert drain_reasons.parse(drain_reasons.text(causes)) == causes


def test_our_reason_carries_mark_check_finding_and_time():
    text = drain_reasons.text([Cause("check_fs_mount_rw(/home)", "not mounted", MOMENT)])
    assert text == "saltern: check_fs_mount_rw(/home): not mounted @2026-12-01T13:01Z"


def test_a_finding_cannot_look_like_another_cause_or_line():
    said = 'a | check_x: b\n"q"\x07'
    (cause,) = drain_reasons.parse(drain_reasons.text([Cause("check_y", said, MOMENT)]))
    assert cause.finding == "a / check_x: b 'q'"


@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("word", ["x", "漢"])
def test_a_reason_fits_accountings_column(count, word):
    causes = [Cause(f"check_{n}", word * 300, MOMENT) for n in range(count)]
    text = drain_reasons.text([*causes, Cause("join", word * 300, MOMENT)])
    assert len(text.encode()) <= 255
    names = [cause.name for cause in drain_reasons.parse(text)]
    assert names[0] == "join"
    assert len(names) == min(count + 1, len(names))
    assert (len(names) < count + 1) == drain_reasons.overflows(text)
    if count <= 2:
        assert len(text.encode()) > 200, "the room is used"
        assert len(names) == count + 1


def test_short_findings_leave_their_room_to_long_ones():
    text = drain_reasons.text([Cause("check_a", "no", MOMENT), Cause("check_b", "y" * 300, MOMENT)])
    assert "check_a: no @" in text
    assert len(text) == 255


def test_what_a_person_made_of_our_reason_is_no_check_that_could_pass():
    (cause,) = drain_reasons.parse("saltern: leave it alone. J.")
    assert not cause.is_check
    assert cause.finding == "leave it alone. J."


def test_a_persons_comment_stays_beside_ours():
    ours = [Cause("check_x", "y", MOMENT, HELD)]
    both = drain_reasons.comment("rack 7", ours)
    assert both == "rack 7 saltern: held check_x: y @2026-12-01T13:01Z"
    words, said = drain_reasons.comment_parts(both)
    assert (words, drain_reasons.parse(said)) == ("rack 7", ours)
    assert drain_reasons.comment(words, []) == "rack 7"
