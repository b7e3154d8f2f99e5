# Phase 7 is complete: Slurm's accounting equals the plan, and what the plan enforces is enforced.
include:
  - p4_scheduler    # the phase before this one; a phase that comes between takes this place
  - p7_identity.accounts

"p7_identity: gate":
  saltern.gate:
    - name: p7_identity
    - phase: p7_identity
    - require:
      - sls: p4_scheduler
      - sls: p7_identity.*
