# Phase 5 is complete: the node's health checks are in place, Slurm calls them, and every one passes.
include:
  - p4_scheduler
  - p5_environment.health

"p5_environment: gate":
  saltern.gate:
    - name: p5_environment
    - phase: p5_environment
    - require:
      - sls: p4_scheduler
      - sls: p5_environment.*
