"""`salt-run saltern.backup` of a database of 100,000 jobs, in the bench's lab."""

import json
import time

from bench import cluster

JOBS = 100_000
# A real job's row, so many times: MariaDB's own sequence tables count. Its step goes with each.
FILL = """
set -e
db() {{ mariadb --batch --skip-column-names slurm_acct_db "$@"; }}
. /etc/profile.d/slurm.sh
srun --quiet --mem=10 --chdir=/ true
for try in $(seq 60); do
    [ "$(db -e 'SELECT COUNT(*) FROM {cluster}_step_table')" = 0 ] || break; sleep 1
done
columns() {{
    db -e "SELECT GROUP_CONCAT(CONCAT(CHAR(96), COLUMN_NAME, CHAR(96)) SEPARATOR ',')
           FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'slurm_acct_db'
           AND TABLE_NAME = '$1' AND COLUMN_NAME NOT IN ('job_db_inx', 'id_job')"
}}
job=$(columns {cluster}_job_table)
step=$(columns {cluster}_step_table)
db <<END
CREATE TEMPORARY TABLE one_job AS SELECT * FROM {cluster}_job_table ORDER BY job_db_inx LIMIT 1;
CREATE TEMPORARY TABLE one_step AS SELECT * FROM {cluster}_step_table ORDER BY job_db_inx LIMIT 1;
INSERT INTO {cluster}_job_table (job_db_inx, id_job, $job)
    SELECT 1000000 + seq, 1000000 + seq, $job FROM one_job, seq_1_to_{jobs};
INSERT INTO {cluster}_step_table (job_db_inx, $step)
    SELECT 1000000 + seq, $step FROM one_step, seq_1_to_{jobs};
END
"""


def measure() -> dict[str, float]:
    """Seconds of one whole backup, every part, and the size of what it keeps of the database."""
    cluster.begin()
    name = cluster.exec_("mgmt01", ". /etc/profile.d/slurm.sh; scontrol show config")
    (cluster_name,) = [
        line.split("=")[1].strip() for line in name.splitlines() if line.startswith("ClusterName")
    ]
    cluster.exec_("mgmt01", FILL.format(cluster=cluster_name, jobs=JOBS))
    began = time.monotonic()
    said = cluster.exec_("mgmt01", "salt-run --out=json saltern.backup")
    took = time.monotonic() - began
    made = json.loads(said[said.index("{") :])["made"]
    (kept,) = [row for row in made if row["part"] == "database"]
    assert int(kept["of"].split()[0]) > JOBS, kept
    return {"backup_100k_jobs_s": round(took, 1)}
