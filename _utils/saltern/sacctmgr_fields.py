"""The settings of associations and QOS: the plan's word, sacctmgr's words, and what clears each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saltern import sacctmgr_values as values


@dataclass(frozen=True)
class Field:
    """One setting.

    option: its word in `set`; column: its word in `format=` (sacctmgr(1), 24.11)
    cleared: what Slurm shows, in canonical form, when it is not set
    clear: the value that clears it
    """

    option: str
    column: str
    kind: str
    cleared: str = ""
    clear: str = "-1"

    def given(self, value: object) -> str:
        """The plan's value in canonical form; empty is cleared. Raises values.Unreadable."""
        found = values.given(self.kind, value)
        return "" if found == self.cleared else found

    def read(self, shown: str) -> str:
        """What sacctmgr printed, in canonical form; empty is cleared."""
        found = values.read(self.kind, shown) if shown else ""
        return "" if found == self.cleared else found

    def words(self, wanted: str, present: str) -> str:
        """``option=value`` that makes the wanted of the present value."""
        if self.kind == "tres":
            return f"{self.option}={_tres(wanted, present)}"
        if self.kind == "seconds" and wanted:
            # GraceTime takes a plain number of seconds only; PreemptExemptTime takes the clock.
            grace = self.option == "GraceTime"
            return f"{self.option}={values.seconds(wanted) if grace else wanted}"
        return f"{self.option}={wanted or self.clear}"


def _tres(wanted: str, present: str) -> str:
    """Types that differ, and -1 for each that is to go: a list only adds to what is there."""
    old = _parts(present)
    new = _parts(wanted)
    changed = [f"{name}={count}" for name, count in new.items() if old.get(name) != count]
    return ",".join([*changed, *(f"{name}=-1" for name in old if name not in new)])


def _parts(canonical: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in canonical.split(",") if word)
    return {name: count for name, _, count in pairs}


# Settings of an association, in the order of the columns that are read.
ASSOCIATION: Mapping[str, Field] = {
    "fairshare": Field("Fairshare", "Share", "shares", cleared="1"),
    "priority": Field("Priority", "Priority", "number"),
    "grp_jobs": Field("GrpJobs", "GrpJobs", "number"),
    "grp_jobs_accrue": Field("GrpJobsAccrue", "GrpJobsAccrue", "number"),
    "grp_submit_jobs": Field("GrpSubmitJobs", "GrpSubmitJobs", "number"),
    "grp_wall": Field("GrpWall", "GrpWall", "minutes"),
    "grp_tres": Field("GrpTRES", "GrpTRES", "tres"),
    "grp_tres_mins": Field("GrpTRESMins", "GrpTRESMins", "tres"),
    "grp_tres_run_mins": Field("GrpTRESRunMins", "GrpTRESRunMins", "tres"),
    "max_jobs": Field("MaxJobs", "MaxJobs", "number"),
    "max_jobs_accrue": Field("MaxJobsAccrue", "MaxJobsAccrue", "number"),
    "max_submit_jobs": Field("MaxSubmitJobs", "MaxSubmitJobs", "number"),
    "max_wall": Field("MaxWall", "MaxWall", "minutes"),
    "max_tres_per_job": Field("MaxTRESPerJob", "MaxTRES", "tres"),
    "max_tres_per_node": Field("MaxTRESPerNode", "MaxTRESPerNode", "tres"),
    "max_tres_mins_per_job": Field("MaxTRESMinsPerJob", "MaxTRESMins", "tres"),
    "min_priority_threshold": Field("MinPrioThresh", "MinPrioThreshold", "number"),
    "qos": Field("QOS", "QOS", "names", clear=""),
    "default_qos": Field("DefaultQOS", "DefaultQOS", "names"),
    "comment": Field("Comment", "Comment", "text", clear=""),  # last: it may hold separators
}

# Settings of a QOS. Its description may hold separators, so it is last.
QOS: Mapping[str, Field] = {
    "priority": Field("Priority", "Priority", "number", cleared="0"),
    "flags": Field("Flags", "Flags", "flags"),
    "preempt": Field("Preempt", "Preempt", "names", clear=""),
    "preempt_mode": Field(
        "PreemptMode", "PreemptMode", "names", cleared="cluster", clear="cluster"
    ),
    "preempt_exempt_time": Field("PreemptExemptTime", "PreemptExemptTime", "seconds"),
    "grace_time": Field("GraceTime", "GraceTime", "seconds", cleared="00:00:00"),
    "usage_factor": Field("UsageFactor", "UsageFactor", "decimal", cleared="1"),
    "usage_threshold": Field("UsageThreshold", "UsageThreshold", "decimal"),
    "limit_factor": Field("LimitFactor", "LimitFactor", "decimal"),
    "min_priority_threshold": Field("MinPrioThresh", "MinPrioThreshold", "number"),
    "grp_jobs": Field("GrpJobs", "GrpJobs", "number"),
    "grp_jobs_accrue": Field("GrpJobsAccrue", "GrpJobsAccrue", "number"),
    "grp_submit_jobs": Field("GrpSubmitJobs", "GrpSubmitJobs", "number"),
    "grp_wall": Field("GrpWall", "GrpWall", "minutes"),
    "grp_tres": Field("GrpTRES", "GrpTRES", "tres"),
    "grp_tres_mins": Field("GrpTRESMins", "GrpTRESMins", "tres"),
    "grp_tres_run_mins": Field("GrpTRESRunMins", "GrpTRESRunMins", "tres"),
    "max_jobs_per_user": Field("MaxJobsPerUser", "MaxJobsPerUser", "number"),
    "max_jobs_per_account": Field("MaxJobsPerAccount", "MaxJobsPerAccount", "number"),
    "max_jobs_accrue_per_user": Field("MaxJobsAccruePerUser", "MaxJobsAccruePerUser", "number"),
    "max_jobs_accrue_per_account": Field(
        "MaxJobsAccruePerAccount", "MaxJobsAccruePerAccount", "number"
    ),
    "max_submit_jobs_per_user": Field("MaxSubmitJobsPerUser", "MaxSubmitJobsPerUser", "number"),
    "max_submit_jobs_per_account": Field(
        "MaxSubmitJobsPerAccount", "MaxSubmitJobsPerAccount", "number"
    ),
    "max_wall": Field("MaxWall", "MaxWallDurationPerJob", "minutes"),
    "max_tres_per_job": Field("MaxTRESPerJob", "MaxTRESPerJob", "tres"),
    "max_tres_per_node": Field("MaxTRESPerNode", "MaxTRESPerNode", "tres"),
    "max_tres_per_user": Field("MaxTRESPerUser", "MaxTRESPerUser", "tres"),
    "max_tres_per_account": Field("MaxTRESPerAccount", "MaxTRESPerAccount", "tres"),
    "max_tres_mins_per_job": Field("MaxTRESMinsPerJob", "MaxTRESMinsPerJob", "tres"),
    "max_tres_run_mins_per_user": Field("MaxTRESRunMinsPerUser", "MaxTRESRunMinsPerUser", "tres"),
    "max_tres_run_mins_per_account": Field(
        "MaxTRESRunMinsPerAccount", "MaxTRESRunMinsPerAccount", "tres"
    ),
    "min_tres_per_job": Field("MinTRESPerJob", "MinTRESPerJob", "tres"),
    "description": Field("Description", "Description", "text", clear=""),
}
