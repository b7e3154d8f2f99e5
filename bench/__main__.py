"""`make bench`: one JSON object of measurements on standard output, progress on standard error."""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable

from bench import accounts, backup, cluster, failover, health, joining, plans

# key: what measures it; a measurement may give several keys, and runs once for all that are asked.
MEASURES: dict[str, Callable[[], dict[str, float]]] = {
    "plan_10k_s": plans.plan_10k,
    "slurm_conf_10k_s": plans.slurm_conf_10k,
    "health_check_ms": health.check,
    "health_check_256_ms": health.check,
    "cluster_cold_s": cluster.cold_and_warm,
    "cluster_warm_s": cluster.cold_and_warm,
    "highstate_noop_s": cluster.highstate_noop,
    "deploy_noop_s": cluster.deploy_noop,
    "join_s": joining.join,
    **{f"join_{step}_s": joining.join for step in joining.STEPS},
    "failover_s": failover.takeover,
    "failover_ratio": failover.takeover,
    "backup_100k_jobs_s": backup.measure,
    "accounts_noop_10k_s": accounts.measure,
    "accounts_first_load_ratio": accounts.measure,
    "accounts_change_100_s": accounts.measure,
    "accounts_peak_mb": accounts.measure,
    "accounts_vs_call_per_object": accounts.measure,
}


def main() -> int:
    """Measure what was asked for, everything by default."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", default="", help=f"keys, by commas: {', '.join(MEASURES)}")
    only = [key for key in parser.parse_args().only.split(",") if key]
    unknown = sorted(set(only) - MEASURES.keys())
    if unknown:
        print(
            f"bench: found {', '.join(unknown)}; expected keys of {', '.join(MEASURES)}",
            file=sys.stderr,
        )
        return 2
    wanted = only or list(MEASURES)
    figures: dict[str, float] = {}
    try:
        for key, measure in MEASURES.items():
            if key in wanted and key not in figures:
                print(f"bench: {key}", file=sys.stderr, flush=True)
                figures |= measure()
    except subprocess.CalledProcessError as error:
        print(f"bench: {shlex.join(error.cmd)} ended with {error.returncode}", file=sys.stderr)
        return 1
    finally:
        cluster.clean()
    print(json.dumps({key: figures[key] for key in MEASURES if key in wanted}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
