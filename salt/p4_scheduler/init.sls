# Phase 4 is complete: this host's part of Slurm works, as Slurm itself says.
include:
  - p1_foundation

"p4_scheduler: gate":
  saltern.gate:
    - name: p4_scheduler
    - phase: p4_scheduler
    - require:
      - sls: p4_scheduler.*
