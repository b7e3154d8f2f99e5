"""Slurm's spelling of values; each expected form was printed by a real Slurm 24.11.5."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saltern import sacctmgr_fields as fields
from saltern import sacctmgr_values as values

SPELLINGS = [
    ("minutes", 90, "01:30:00"),
    ("minutes", "1-0", "1-00:00:00"),
    ("minutes", "1-12:00:00", "1-12:00:00"),
    ("minutes", "30-00:00:00", "30-00:00:00"),
    ("minutes", "2:30", "00:03:00"),  # minutes:seconds; a part of a minute counts as one
    ("minutes", "UNLIMITED", ""),
    ("minutes", "-1", ""),
    ("seconds", 120, "00:02:00"),
    ("seconds", "00:10:00", "00:10:00"),
    ("tres", {"mem": "1.5T", "cpu": 2048, "gres/gpu:a100": 32}, "cpu=2048,gres/gpu:a100=32,mem=1572864M"),
    ("tres", "mem=1.50T,gres/gpu:a100=32,cpu=2048", "cpu=2048,gres/gpu:a100=32,mem=1572864M"),
    ("tres", "cpu=4,mem=-1", "cpu=4"),
    ("tres", "", ""),
    ("names", "long,normal", "long,normal"),
    ("names", ["Normal", "long"], "long,normal"),
    ("flags", "NoDecay,DenyOnLimit", "DenyOnLimit,NoDecay"),
    ("decimal", "1.500000", "1.5"),
    ("decimal", 2, "2"),
    ("shares", "Parent", "parent"),
    ("shares", 400, "400"),
    ("number", "INVALID", ""),
    ("text", 'Dept. of Physics | "Theory"', "dept. of physics | `theory`"),
    ("text", "Größe 漢字 Δ", "größe 漢字 Δ"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "canonical"), SPELLINGS)
def test_accounts_values_have_one_form(kind, given, canonical):
    assert values.given(kind, given) == canonical
    assert values.given(kind, canonical) == canonical


@given(st.integers(min_value=0, max_value=10**6))
def test_accounts_minutes_are_read_as_they_are_printed(minutes):
    assert values.minutes(values.clock(minutes * 60)) == values.clock(minutes * 60)


@given(st.integers(min_value=1, max_value=10**7))
def test_accounts_memory_is_exact(size):
    assert values.size_mb(f"{size}M") == size
    assert values.size_mb(f"{size}G") == size * 1024


@pytest.mark.parametrize("value", ["much", "1:2:3:4", {}])
def test_accounts_values_that_are_none_are_refused(value):
    with pytest.raises(values.Unreadable):
        values.minutes(value)


WORDS = [
    ("grp_tres", "cpu=4,mem=10M", "cpu=4,gres/gpu=2", "GrpTRES=mem=10M,gres/gpu=-1"),
    ("grp_tres", "", "cpu=4,mem=10M", "GrpTRES=cpu=-1,mem=-1"),
    ("max_jobs", "", "4", "MaxJobs=-1"),
    ("qos", "", "a,b", "QOS="),
    ("fairshare", "", "7", "Fairshare=-1"),
    ("comment", "", "x", "Comment="),
]


@pytest.mark.parametrize(("key", "wanted", "present", "word"), WORDS)
def test_accounts_limits_are_cleared_one_by_one(key, wanted, present, word):
    assert fields.ASSOCIATION[key].words(wanted, present) == word
