"""When a backup is due, what is told of it, and the SQL that swaps databases."""

import pytest
from saltern import backup

NOW = 1_000_000_000.0
HOUR = 3600


def row(part="state", hours=0.0, **more):
    return {"part": part, "at": NOW - hours * HOUR, **more}


def test_a_name_is_its_time_in_utc():
    assert backup.name(0) == "19700101T000000Z"


@pytest.mark.parametrize(
    ("rows", "due"),
    [
        pytest.param([], True, id="none"),
        pytest.param([row(hours=25), row(hours=2)], False, id="a-young-one"),
        pytest.param([row(hours=23.9)], True, id="in-the-hour-before"),
        pytest.param([row(hours=23)], False, id="not-yet"),
    ],
)
def test_what_is_due(rows, due):
    assert backup.is_due(rows, 24, NOW) == due


def test_what_is_late_is_told_by_part():
    rows = [row("database", 3), row("state", 49), row("state", 70)]
    assert backup.late(rows, ("database", "state", "secrets"), 24, NOW) == [
        "state: the newest is 2 days old",
        "secrets: none",
    ]


@pytest.mark.parametrize(
    ("made", "here", "refused"),
    [
        ("24.11.5", "24.11.5", False),
        ("24.05.1", "24.11.5", False),
        ("24.11.7", "24.11.5", False),  # a minor version does not change what is written
        ("25.05.0", "24.11.5", True),
        ("", "24.11.5", False),
        ("24.11.5", "", False),
    ],
)
def test_what_a_newer_slurm_wrote_is_refused(made, here, refused):
    assert bool(backup.too_new({"slurm": made}, here)) == refused


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes(count, text):
    assert backup.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0 s"), (119, "119 s"), (7200, "2 h"), (3 * 86_400, "3 days")]
)
def test_ages(seconds, text):
    assert backup.age(seconds) == text


def test_the_swap_renames_every_table_in_one_statement():
    statements = backup.swap(["a", "b"], ["a", "c"]).split("; ")
    (rename,) = [one for one in statements if one.startswith("RENAME")]
    assert rename == (
        "RENAME TABLE slurm_acct_db.`a` TO slurm_acct_db_replaced.`a`, "
        "slurm_acct_db.`b` TO slurm_acct_db_replaced.`b`, "
        "slurm_acct_db_restored.`a` TO slurm_acct_db.`a`, "
        "slurm_acct_db_restored.`c` TO slurm_acct_db.`c`"
    )
    assert statements.index(rename) == 3, "nothing is dropped before it"
    assert not any("DROP DATABASE slurm_acct_db;" in f"{one};" for one in statements)
